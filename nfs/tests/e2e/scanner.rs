//! The payload scanner, the one in Rust.

use crate::frames::{arp, ping, tcp, udp};
use crate::run::Setup;

const CONFIG: &str = "
action = \"drop\"
patterns = [\"malware\", \"attack\"]
[[pattern]]
name = \"greeting\"
text = \"hello\"
ignore-case = true
action = \"count\"
[[pattern]]
name = \"shellcode\"
hex = \"90 90 90\"
action = \"alert\"
";

#[test]
fn it_finds_patterns_in_payloads_only() {
    let mut frames = vec![
        tcp("10.0.0.1:1", "10.0.0.2:80", "P.", b"GET /malware.exe"),
        udp("10.0.0.1:1", "10.0.0.2:80", b"xxattackxx"),
        udp("10.0.0.1:1", "10.0.0.2:80", b"HeLLo hello"),
        udp("[fd00::1]:1", "[fd00::2]:80", b"\x90\x90\x90"),
        udp("10.0.0.1:1", "10.0.0.2:80", b"harmless"),
        ping("10.0.0.1", "10.0.0.2", 1),
        arp("10.0.0.1", "10.0.0.2"),
        tcp("10.0.0.1:1", "10.0.0.2:80", ".", b""),
    ];
    let mut wrong = tcp("10.0.0.1:1", "10.0.0.2:80", ".", b"malware");
    wrong[46] = 0xf0; // A header length beyond the packet.
    frames.push(wrong);
    // Padding of a frame, after the IP packet, is no payload.
    let mut padded = udp("10.0.0.1:1", "10.0.0.2:80", b"x");
    padded.extend(b"malware");
    frames.push(padded);
    let setup = Setup::new("scanner", &["lan", "wan"], CONFIG).reading(&["patterns"]);
    let outcome = setup.input("lan", &frames).run();
    assert!(outcome.handler("patterns").contains("greeting 2\n"), "{}", outcome.handler("patterns"));
    let kept: Vec<_> = [2, 3, 4, 5, 6, 7, 9].map(|at| frames[at].clone()).to_vec();
    assert_eq!(outcome.out("wan"), kept);
    assert_eq!(outcome.drops(), [("malformed", 1), ("pattern", 2)]);
    assert_eq!((outcome.counter("matches"), outcome.counter("alerts")), (5, 1));
    assert_eq!(outcome.counter("scanned-packets"), 6);
    assert!(outcome.warnings.iter().any(|text| text.contains("pattern `shellcode` was seen")), "{outcome:?}");
}

#[test]
fn patterns_come_from_a_file_that_was_granted() {
    let frames = [udp("10.0.0.1:1", "10.0.0.2:80", b"xxattackxx"), udp("10.0.0.1:1", "10.0.0.2:80", b"x")];
    let setup =
        Setup::new("scanner", &["0", "1"], "file = \"patterns.txt\"").keys("reads = [\"patterns.txt\"]");
    // The NF runs as another user.
    let open = std::os::unix::fs::PermissionsExt::from_mode(0o755);
    std::fs::set_permissions(setup.folder.path(), open).expect("ours");
    std::fs::write(setup.folder.path().join("patterns.txt"), "attack\n\nmalware\n").expect("written");
    let outcome = setup.input("0", &frames).run().sound();
    assert_eq!((outcome.out("1"), outcome.drops()), (&frames[1..], vec![("pattern", 1)]));
}

#[test]
fn its_mistakes_are_told() {
    Setup::new("scanner", &["0", "1"], "action = \"kill\"\n[[pattern]]\nhex = \"9\"\n").refused(&[
        "config:1: `action`: `kill` is none of `drop`, `alert`, `count`",
        "config:3: `hex`: `9` is no row of bytes",
    ]);
    Setup::new("scanner", &["0", "1"], "").refused(&["config:1: there are no patterns"]);
}
