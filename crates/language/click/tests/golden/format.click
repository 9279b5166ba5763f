

// leading comment


a::Queue(10,   20)   ;   b   ::   Queue // trailing

  /* before c */ c ::Queue;
InfiniteSource[0]->[0]a->   // to b
   Unqueue
->b;
b->{input->Shaper(5)->output}->{
input -> Null -> // inside
output } -> Unqueue -> d
:: Tee /* d */ [ 0 , 1 ] => Discard ,
   Discard;
elementclass   E{$a,KEY $b|input->Print($a) ->output
||...
}
elementclass F { // first
  // only a comment
}
c->Unqueue->(   input -> output  )->Discard; Idle -> c
// the end
