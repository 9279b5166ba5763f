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

/// UDP leaves by the first output, other protocols by the second; short packets are dropped.
pub fn by_protocol() -> Verified {
    Verified::new(ir::text::parse(BY_PROTOCOL).expect("a program")).expect("it is valid")
}
