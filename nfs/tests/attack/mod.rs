//! Runs a chain with an NF that attacks, and an innocent one beside it, in the real binary.

#[expect(dead_code, reason = "other tests look at more of them")]
#[path = "../../../crates/millrace/tests/e2e/accounts.rs"]
mod accounts;

use accounts::Accounts;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

/// Longer than any run of these tests, also on a busy machine.
const PATIENCE: Duration = Duration::from_secs(120);

/// The directory of this package's programs.
fn programs() -> &'static Path {
    Path::new(env!("CARGO_BIN_EXE_nf-monitor")).parent().expect("a folder")
}

/// The binary of the workspace.
pub fn millrace() -> PathBuf {
    let binary = programs().join("millrace");
    assert!(binary.exists(), "there is no {}: build the workspace first", binary.display());
    binary
}

/// The NF that attacks.
pub fn attacker() -> PathBuf {
    let program = programs().join("examples/attacker");
    assert!(program.exists(), "there is no {}: build the examples of millrace-nfs", program.display());
    program
}

/// Whether this process lacks the rights of root, which NFs with users and namespaces of their own need;
/// prints this.
pub fn lacks_root(test: &str) -> bool {
    let lacks = !rustix::process::geteuid().is_root();
    if lacks {
        eprintln!("SKIP: {test}: NFs run as users of their own only where root starts them");
    }
    lacks
}

impl Accounts {
    pub fn handler(&self, name: &str) -> &str {
        self.handlers[name].as_str().unwrap_or_default()
    }
}

/// An attack, and its chain.
pub struct Attack<'a> {
    /// The name of the attack, and its object.
    pub text: &'a str,
    /// Lines of the attacker's table in the chain file.
    pub keys: &'a str,
    /// Lines of the innocent NF's table.
    pub others_keys: &'a str,
    /// How long the chain runs, in seconds.
    pub seconds: u32,
    /// The keys of the port that the attacker sends to.
    pub port: &'a str,
    /// Further handlers that are read at the end.
    pub handlers: Vec<String>,
}

impl<'a> Attack<'a> {
    pub fn new(text: &'a str) -> Attack<'a> {
        Attack { text, keys: "", others_keys: "", seconds: 1, port: "discard = true", handlers: vec![] }
    }

    /// The attack of an observer.
    pub fn observing(self) -> Attack<'a> {
        Attack { keys: "access = \"observe\"", ..self }
    }

    /// The attack of a tap; the innocent NF is a tap, too.
    pub fn tapping(self) -> Attack<'a> {
        Attack { keys: "access = \"tap\"", others_keys: "access = \"tap\"", ..self }
    }

    pub fn keys(self, keys: &'a str) -> Attack<'a> {
        Attack { keys, ..self }
    }

    /// With these keys of the port that the attacker sends to.
    pub fn port(self, port: &'a str) -> Attack<'a> {
        Attack { port, ..self }
    }

    pub fn seconds(self, seconds: u32) -> Attack<'a> {
        Attack { seconds, ..self }
    }

    /// Reads these handlers of the attacker at the end.
    pub fn reading(self, handlers: &[&str]) -> Attack<'a> {
        Attack { handlers: handlers.iter().map(|name| format!("bad/process.{name}")).collect(), ..self }
    }

    /// The chain file: one link for each of the two NFs, which share only the host's worker.
    pub fn chain(&self) -> String {
        let (attacker, monitor) = (attacker(), env!("CARGO_BIN_EXE_nf-monitor"));
        format!(
            "links = [\"left -> [0]bad[1] -> gone\", \"right -> [0]good[1] -> there\"]\n\
             [ports]\n\
             left = {{ traffic = {{ flows = 100, size = \"64\" }} }}\n\
             right = {{ traffic = {{ flows = 100, size = \"64\" }} }}\n\
             gone = {{ {} }}\nthere = {{ discard = true }}\n\
             [nf.bad]\nprogram = \"{}\"\narguments = [\"config\"]\nconfig = \"{}\"\n{}\n\
             [nf.good]\nprogram = \"{monitor}\"\n{}\n",
            self.port,
            attacker.display(),
            self.text,
            self.keys,
            self.others_keys
        )
    }

    /// Performs the attack. In any case the host ends by itself, its packet accounting balances, and the
    /// innocent NF loses no packets.
    ///
    /// One attack runs at a time, because each uses the whole machine. If other tests use it, too, an NF may
    /// get no core for so long that its packets find no room; an attack with losses is therefore repeated.
    pub fn make(self) -> Made {
        let lock = std::fs::File::create(std::env::temp_dir().join("millrace-attack.lock")).expect("a file");
        lock.lock().expect("a lock");
        let mut made = self.try_once();
        for _ in 0..3 {
            if made.lost_by_others().is_empty() {
                break;
            }
            made = self.try_once();
        }
        assert_eq!(made.lost_by_others(), [], "{}: {}", made.attack, made.told);
        made
    }

    fn try_once(&self) -> Made {
        let folder = tempfile::tempdir().expect("a folder");
        // Some attacks are performed before the NF receives its configuration.
        let chain = self.chain().replace("[\"config\"]", &format!("[\"{}\"]", self.text));
        std::fs::write(folder.path().join("chain.toml"), chain).expect("written");
        let handlers = [
            "bad/process.restarts",
            "bad/process.bad-descriptors",
            "bad/process.neighbours",
            "good/process.restarts",
            "good/process.counters",
        ];
        let mut command = Command::new(millrace());
        command.args(["run", "chain.toml", "--json", "--for", &self.seconds.to_string()]);
        command.args(handlers.iter().flat_map(|handler| ["-H", handler]));
        command.args(self.handlers.iter().flat_map(|handler| ["-H", handler]));
        command.env("SECRET_OF_THE_OPERATOR", "1").current_dir(folder.path());
        let files = ["out", "err"].map(|name| folder.path().join(name));
        let open = |path: &PathBuf| std::fs::File::create(path).expect("created");
        command.stdin(Stdio::null()).stdout(open(&files[0])).stderr(open(&files[1]));
        let took = Instant::now();
        let code = wait(command.spawn().expect("it starts"));
        let took = took.elapsed();
        let read =
            |path: &PathBuf| String::from_utf8_lossy(&std::fs::read(path).expect("there")).into_owned();
        let [out, err] = files.each_ref().map(read);
        assert!(matches!(code, Some(0 | 1)), "{}: the host ended with {code:?}: {err}", self.text);
        assert!(!err.contains("panicked"), "{}: {err}", self.text);
        let accounts: Accounts =
            serde_json::from_str(&out).unwrap_or_else(|error| panic!("{}: {error}: {err}", self.text));
        let made = Made { attack: self.text.into(), accounts, told: err, took };
        made.assert_nobody_else_was_harmed();
        made
    }
}

fn wait(mut child: Child) -> Option<i32> {
    let end = Instant::now() + PATIENCE;
    loop {
        match child.try_wait().expect("a child") {
            Some(status) => return status.code(),
            None if Instant::now() > end => {
                let _ = child.kill();
                panic!("still running after {PATIENCE:?}");
            }
            None => std::thread::sleep(Duration::from_millis(5)),
        }
    }
}

/// The result of an attack.
pub struct Made {
    pub attack: String,
    pub accounts: Accounts,
    /// The output of the attacker.
    pub told: String,
    pub took: Duration,
}

impl Made {
    fn assert_nobody_else_was_harmed(&self) {
        let Made { attack, accounts, told, .. } = self;
        accounts.assert_balanced();
        let good = accounts.element("good/process");
        assert!(good.outputs[1] > 1_000, "{attack}: {good:?}\n{told}");
        assert_eq!(accounts.handler("good/process.restarts"), "0", "{attack}");
        assert!(
            !accounts.warnings.iter().any(|finding| finding.contains("`good`")),
            "{:?}",
            accounts.warnings
        );
    }

    /// Packets that the innocent NF lost, by reason. Only packets in flight at the end of the run may be
    /// lost.
    fn lost_by_others(&self) -> Vec<(String, u64)> {
        let dropped = &self.accounts.element("good/process").dropped;
        dropped.iter().filter(|(reason, count)| *count > 0 && reason != "not-back").cloned().collect()
    }

    /// How often the attacker was restarted.
    pub fn restarts(&self) -> u64 {
        self.accounts.handler("bad/process.restarts").parse().expect("a number")
    }

    /// Its bad descriptors, by kind.
    pub fn bad_claims(&self) -> &str {
        self.accounts.handler("bad/process.bad-descriptors")
    }

    /// Neighbours that the host resolves for the attacker, and requests that were refused.
    pub fn neighbours(&self) -> [u64; 2] {
        let text = self.accounts.handler("bad/process.neighbours");
        ["wanted ", "refused "].map(|name| {
            let line = text.lines().find_map(|line| line.strip_prefix(name));
            line.and_then(|count| count.parse().ok()).unwrap_or_else(|| panic!("no {name} in {text}"))
        })
    }

    /// Packets of the attacker that were dropped for a reason.
    pub fn dropped(&self, reason: &str) -> u64 {
        let dropped = &self.accounts.element("bad/process").dropped;
        dropped.iter().filter(|(name, _)| name == reason).map(|(_, count)| count).sum()
    }

    /// Checks that the attack was completed and every attempt refused, including these.
    #[track_caller]
    pub fn was_refused(&self, tries: &[&str]) {
        let Made { attack, told, .. } = self;
        assert!(!told.contains("WORKED"), "{attack}: {told}");
        assert!(told.contains(&format!("attack: over: {attack}")), "{attack}: {told}");
        for what in tries {
            assert!(told.contains(&format!("attack: {what}: refused")), "{attack}: no {what}: {told}");
        }
        assert_eq!(self.restarts(), 0, "{attack}");
    }

    /// Checks that the attacker was evicted, with this reason.
    #[track_caller]
    pub fn was_evicted(&self, why: &str) {
        let Made { attack, accounts, told, .. } = self;
        let expected = format!("NF `bad` {why}");
        let found = accounts
            .warnings
            .iter()
            .any(|found| found.starts_with(&expected) && found.ends_with("was ended"));
        assert!(found, "{attack}: {:?}\n{told}", accounts.warnings);
    }

    /// Checks that the attacker was killed for its use of resources, and the operator received a remedy.
    #[track_caller]
    pub fn ran_out_of_memory(&self) {
        let told = "NF `bad` ran out of memory (limit 64 MiB: raise `memory_mib`) and was ended";
        assert!(self.accounts.warnings.iter().any(|found| found == told), "{:?}", self.accounts.warnings);
    }

    /// Checks that the attacker ended by itself and was restarted, repeatedly.
    #[track_caller]
    pub fn was_restarted(&self) {
        assert!(self.restarts() > 0, "{}: {}", self.attack, self.told);
    }
}
