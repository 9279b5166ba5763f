a :: Idle -> Discard
