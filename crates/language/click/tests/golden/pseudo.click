elementclass Bad {
  input[1] -> Null -> [2]output;
  Null -> input;
  output -> Null;
}
Idle -> [1]b :: Bad[2] -> Discard;
elementclass Wire { input -> output }
Idle -> w :: Wire [1] -> Discard;
Idle -> [2]w;
elementclass Unused { input -> Discard; input[1] -> Discard }
Idle -> u :: Unused;
(input -> output; input[2] -> Discard);
