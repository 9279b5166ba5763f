//! The ARP responder.

use crate::frames::{HERE, arp, see, solicitation, udp};
use crate::run::Setup;

const CONFIG: &str = "
[[address]]
ip = \"10.0.0.254\"
mac = \"02:00:00:00:00:fe\"
[[address]]
ip = \"192.0.2.0/24\"
mac = \"02:00:00:00:00:fd\"
interface = \"wan\"
[[address]]
ip = \"fd00::fe\"
mac = \"02:00:00:00:00:fe\"
";
const OURS: [u8; 6] = [2, 0, 0, 0, 0, 0xfe];

#[test]
fn it_answers_for_its_addresses() {
    let mut reply = arp("10.0.0.1", "10.0.0.254");
    reply[21] = 2;
    let mut wrong = arp("10.0.0.1", "10.0.0.254");
    wrong.truncate(30);
    let others = [
        arp("10.0.0.1", "10.0.0.2"),
        arp("10.0.0.1", "192.0.2.7"), // On the other interface only.
        arp("10.0.0.254", "10.0.0.254"),
        solicitation("fd00::1", "fd00::2"),
        udp("10.0.0.1:1", "10.0.0.2:2", b""),
        reply,
    ];
    let mut bad_sum = solicitation("fd00::1", "fd00::fe");
    bad_sum[56] ^= 1;
    let mut frames = vec![arp("10.0.0.1", "10.0.0.254"), solicitation("fd00::1", "fd00::fe"), wrong, bad_sum];
    frames.push(solicitation("::", "fd00::fe"));
    frames.extend(others.clone());
    let outcome = Setup::new("arp-responder", &["lan", "wan"], CONFIG).input("lan", &frames).run().sound();
    assert_eq!(outcome.out("wan"), others);
    assert_eq!(outcome.drops(), [("answered", 3), ("malformed", 2)]);
    assert_eq!((outcome.counter("arp-replies"), outcome.counter("nd-advertisements")), (1, 2));
    let answers = outcome.out("lan");
    let expected =
        [&HERE[..], &OURS, &[8, 6, 0, 1, 8, 0, 6, 4, 0, 2], &OURS, &[10, 0, 0, 254], &HERE, &[10, 0, 0, 1]];
    assert_eq!(answers[0], expected.concat());
    let advertisement = see(&answers[1]);
    assert_eq!((advertisement.ends().as_str(), advertisement.ttl), ("fd00::fe > fd00::1", 255));
    assert_eq!((advertisement.to_mac, advertisement.from_mac), (HERE, OURS));
    assert_eq!(advertisement.payload[..2], [136, 0]);
    assert_eq!(advertisement.payload[4], 0x60, "solicited, overrides");
    assert_eq!(advertisement.payload[24..], [&[2, 1][..], &OURS].concat());
    let to_all = see(&answers[2]);
    assert_eq!((to_all.ends().as_str(), to_all.payload[4]), ("fd00::fe > ff02::1", 0x20));
}

#[test]
fn alone_it_drops_what_is_not_for_it() {
    let config = format!("others = \"drop\"\n{CONFIG}");
    let frames = [arp("10.0.0.1", "10.0.0.2"), arp("10.0.0.1", "10.0.0.254")];
    let outcome =
        Setup::new("arp-responder", &["lan"], &config.replace("\"wan\"", "\"lan\"")).input("lan", &frames);
    let outcome = outcome.run().sound();
    assert_eq!((outcome.out("lan").len(), outcome.drops()), (1, vec![("answered", 1), ("not-ours", 1)]));
}

#[test]
fn its_mistakes_are_told() {
    let config = "[[address]]\nip = \"10.0.0.1/8\"\n[[address]]\nmac = \"x\"\ninterface = \"dmz\"\n";
    Setup::new("arp-responder", &["lan", "wan"], config).refused(&[
        "config:1: [[address]] needs `mac`",
        "config:2: `ip`: `10.0.0.1/8` has bits behind its length",
        "config:4: `mac`: `x` is not an Ethernet address",
        "config:5: `interface`: there is no interface `dmz`",
    ]);
}

#[test]
fn many_that_make_packets_share_little_memory() {
    let folder = tempfile::tempdir().expect("a folder");
    let mut chain = "links = [\"in -> [0]a[1] -> [0]b[1] -> [0]c[1] -> [0]d[1] -> out\"]
        [ports]
        in = { traffic = { flows = 10, size = \"64\" }, count = 20000 }
        out = { discard = true }\n"
        .to_string();
    for nf in ["a", "b", "c", "d"] {
        let program = crate::run::shipped("arp-responder").display().to_string();
        let config = CONFIG.replace("\"wan\"", "\"0\"");
        chain += &format!("[nf.{nf}]\nprogram = \"{program}\"\ntrust = \"all\"\nconfig = '''{config}'''\n");
    }
    std::fs::write(folder.path().join("chain.toml"), chain).expect("written");
    let mut run = std::process::Command::new(crate::run::millrace());
    let output =
        run.args(["run", "chain.toml", "--slots", "2048", "--json"]).current_dir(folder.path()).output();
    let output = output.expect("it runs");
    let json: serde_json::Value = serde_json::from_slice(&output.stdout).expect("accounts");
    assert_eq!((json["sent"].as_u64(), json["dropped"].as_u64()), (Some(20000), Some(0)), "{json}");
}
