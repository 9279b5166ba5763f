a :: Null; Idle -> a -> Discard
elementclass Loop { input -> output } l :: (->) -> l2 :: Null -> Discard;
elementclass D { D2 } elementclass D2 { Idle }
Idle -> Discard -> -> Discard;
elementclass { }
elementclass G [
x :: { $a $b | Idle };
y :: { a, $b | Idle };
Idle => Discard, Discard }
z :: Queue ) ;
v :: $a;
