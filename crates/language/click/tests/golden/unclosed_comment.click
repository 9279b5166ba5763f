a :: Idle -> Discard;
/* never closed
b :: Idle
