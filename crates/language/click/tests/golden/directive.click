a :: Idle;
# 100 "generated.click"
b :: Idel;
#line 7
c :: Idel2 -> Discard;
