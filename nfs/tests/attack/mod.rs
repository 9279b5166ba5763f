//! Runs a chain with an NF that attacks, and an innocent one beside it, through the real binary.

#[expect(dead_code, reason = "other tests look at more of them")]
#[path = "../../../crates/millrace/tests/e2e/accounts.rs"]
mod accounts;

use accounts::Accounts;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

/// Longer than any run here takes, even on a machine with other work to do.
const PATIENCE: Duration = Duration::from_secs(120);

/// The folder that this package's programs are in.
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

/// Whether this is root's, who alone can give NFs users and namespaces of their own; says so aloud when not.
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

/// An attack, and where it is made.
pub struct Attack<'a> {
    /// Its name, and what it is made on.
    pub text: &'a str,
    /// Lines of the attacker's table in the chain file.
    pub keys: &'a str,
    /// Of the innocent NF's.
    pub others_keys: &'a str,
    /// How long the chain runs, in seconds.
    pub seconds: u32,
    /// What the port is that the attacker sends to.
    pub port: &'a str,
    /// Further handlers that are read at its end.
    pub handlers: Vec<String>,
}

impl<'a> Attack<'a> {
    pub fn new(text: &'a str) -> Attack<'a> {
        Attack { text, keys: "", others_keys: "", seconds: 1, port: "discard = true", handlers: vec![] }
    }

    /// By an NF that only looks.
    pub fn observing(self) -> Attack<'a> {
        Attack { keys: "access = \"observe\"", ..self }
    }

    /// By an NF that looks at packets where they lie, as the innocent one does.
    pub fn tapping(self) -> Attack<'a> {
        Attack { keys: "access = \"tap\"", others_keys: "access = \"tap\"", ..self }
    }

    pub fn keys(self, keys: &'a str) -> Attack<'a> {
        Attack { keys, ..self }
    }

    /// Sends to a port that is so.
    pub fn port(self, port: &'a str) -> Attack<'a> {
        Attack { port, ..self }
    }

    pub fn seconds(self, seconds: u32) -> Attack<'a> {
        Attack { seconds, ..self }
    }

    /// Reads handlers of the attacker at the end.
    pub fn reading(self, handlers: &[&str]) -> Attack<'a> {
        Attack { handlers: handlers.iter().map(|name| format!("bad/process.{name}")).collect(), ..self }
    }

    /// The chain file: one link for each of the two, which share nothing but the host's worker.
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

    /// Makes it. However it goes, the host ends by itself, its in-flight table balance, and the innocent NF does what it
    /// always does.
    ///
    /// One attack at a time: they take all the machine has. Where other tests do so too, an NF may get no core for
    /// so long that its packets find no room; what happens once may not happen again.
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
        // Some attacks are made before there is a configuration.
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

/// An attack that was made.
pub struct Made {
    pub attack: String,
    pub accounts: Accounts,
    /// What the attacker wrote.
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

    /// What the innocent NF lost, by reason. The end of a run cuts off what is under way, and that is all.
    fn lost_by_others(&self) -> Vec<(String, u64)> {
        let dropped = &self.accounts.element("good/process").dropped;
        dropped.iter().filter(|(reason, count)| *count > 0 && reason != "not-back").cloned().collect()
    }

    /// How often the attacker was started anew.
    pub fn restarts(&self) -> u64 {
        self.accounts.handler("bad/process.restarts").parse().expect("a number")
    }

    /// What it said of packets that is not so.
    pub fn bad_claims(&self) -> &str {
        self.accounts.handler("bad/process.bad-descriptors")
    }

    /// Neighbours that the host looks for on its behalf, and those that were refused.
    pub fn neighbours(&self) -> [u64; 2] {
        let text = self.accounts.handler("bad/process.neighbours");
        ["wanted ", "refused "].map(|name| {
            let line = text.lines().find_map(|line| line.strip_prefix(name));
            line.and_then(|count| count.parse().ok()).unwrap_or_else(|| panic!("no {name} in {text}"))
        })
    }

    /// What became of packets of the attacker.
    pub fn dropped(&self, reason: &str) -> u64 {
        let dropped = &self.accounts.element("bad/process").dropped;
        dropped.iter().filter(|(name, _)| name == reason).map(|(_, count)| count).sum()
    }

    /// The attack was over, every try of it refused; these among others.
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

    /// The attacker was ended for what it did, in these words.
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

    /// The attacker was ended for what it used, and the operator told what to do.
    #[track_caller]
    pub fn ran_out_of_memory(&self) {
        let told = "NF `bad` ran out of memory (limit 64 MiB: raise `memory_mib`) and was ended";
        assert!(self.accounts.warnings.iter().any(|found| found == told), "{:?}", self.accounts.warnings);
    }

    /// The attacker ended by itself and was started anew, again and again.
    #[track_caller]
    pub fn was_restarted(&self) {
        assert!(self.restarts() > 0, "{}: {}", self.attack, self.told);
    }
}
