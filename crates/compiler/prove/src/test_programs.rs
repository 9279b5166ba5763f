//! Programs that several tests look at.

use ir::Verified;

const BY_PROTOCOL: &str = "program P outputs 2
reason short
entries b0
b0:
  need net 20 b1 b4
b1:
  v0 = load ip.proto
  v1 = const 17
  v2 = eq v0 v1
  branch v2 b2 b3
b2:
  emit 0
b3:
  emit 1
b4:
  drop 0
";

const BY_THREE_BYTES: &str = "program P outputs 4
reason short
entries b0
b0:
  need net 20 b1 b8
b1:
  v0 = load ip.proto
  switch v0 6:b3 17:b4 else b2
b2:
  drop 0
b3:
  v1 = load ip.ttl
  v2 = const 9
  v3 = lt v1 v2
  branch v3 b5 b6
b4:
  emit 3
b5:
  emit 0
b6:
  v4 = load ip.tos
  branch v4 b7 b9
b7:
  emit 1
b8:
  drop 0
b9:
  emit 2
";

/// UDP leaves by the first output, other protocols by the second; short packets are dropped.
pub fn by_protocol() -> Verified {
    program(BY_PROTOCOL)
}

/// Packets leave by one of four outputs, by their protocol, TTL and TOS; short ones are dropped.
pub fn by_three_bytes() -> Verified {
    program(BY_THREE_BYTES)
}

fn program(text: &str) -> Verified {
    Verified::new(ir::text::parse(text).expect("a program")).expect("it is valid")
}
