a :: Queue;
elementclass X {
  input -> Null -> output
b :: Discard;
