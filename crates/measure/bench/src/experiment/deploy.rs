//! Time to deployment of an NF: figure 17 of the NetVM paper (IEEE TNSM 2015, section V.F).
//!
//! The same NF (header check, filter, TTL) is added to a running chain in every way that this machine
//! supports, while packets arrive continuously. The time runs from the start request until the handshake of
//! host and NF has finished, and until the first packet leaves the NF. The figure shows the paper's values
//! beside them.

use super::lab::{Lab, trial};
use super::live::{LiveChain, await_state, out_of};
use super::script::Script;
use crate::BenchError;
use crate::figure::{Axis, Expectation, Figure, Point, Series};
use crate::shape::Shape;
use crate::start::RunOptions;
use container::runtime::{Installed, Runtime};
use nf_host::{Instance, NfState};
use std::path::Path;
use std::time::{Duration, Instant};

/// The NF: a header check, rules, the time to live.
const FUNCTION: &str =
    "FromDevice(0) -> CheckIPHeader(14) -> rules :: IPFilter(RULES) -> DecIPTTL -> ToDevice(1);";
/// Rules that let the packets through, and rules that drop them.
const OPEN: &str = "deny dst tcp port 23, allow all";
const SHUT: &str = "deny all";
/// The curves: until an NF had said hello, and until the first packet came out of it.
const HELLO: &str = "until hello";
const FIRST: &str = "until the first packet";
/// Flows of the traffic.
const FLOWS: u32 = 1_000;
/// Where the paper's values are from.
const PAPER: &str = "NetVM, section V.F: KVM on a Xeon X5650 server with 10 GbE";
/// How long the chain gets to send its remaining packets once the rules drop all new ones.
const RUN_OUT: Duration = Duration::from_millis(20);

/// A way to deploy an NF into a chain.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Deployment {
    /// The element exists, and a handler write gives it other rules.
    Rules,
    /// The chain is replaced by one with the NF as elements.
    Swap(Shape),
    /// A program in a process of its own is restarted in a running chain.
    Program,
    /// The same with a Click configuration, which the process compiles first.
    Click,
    /// The chain is replaced by one with the NF in a process.
    Cold,
    /// A container of this runtime is restarted in a running chain.
    Container(Runtime),
}

impl Deployment {
    fn all() -> Vec<Deployment> {
        let mut ways =
            vec![Deployment::Rules, Deployment::Swap(Shape::Modular), Deployment::Swap(Shape::Fused)];
        ways.extend([Deployment::Program, Deployment::Click, Deployment::Cold]);
        ways.extend(Runtime::ALL.map(Deployment::Container));
        ways
    }

    fn name(self) -> String {
        match self {
            Deployment::Rules => "other rules in place".into(),
            Deployment::Swap(shape) => format!("chain exchanged, {}", shape.name()),
            Deployment::Program => "program in a process, restarted".into(),
            Deployment::Click => "Click in a process, restarted".into(),
            Deployment::Cold => "chain exchanged, Click in a process".into(),
            Deployment::Container(runtime) => format!("container, {}", runtime.name()),
        }
    }
}

/// The times of one deployment, in seconds.
#[derive(Clone, Copy, PartialEq, Debug)]
struct Took {
    /// Until its handshake finished; `None` where there is no handshake.
    hello_s: Option<f64>,
    /// Until the first packet left the NF; `None` where packets do not pass through it.
    first_s: Option<f64>,
}

impl Took {
    /// Measures how long it takes until a chain has sent more than `before` packets.
    fn first(chain: &LiveChain, what: &str, before: u64, since: Instant) -> Result<Took, BenchError> {
        let first_s = chain.await_growth(what, before, since, |report| report.sent())?;
        Ok(Took { hello_s: None, first_s: Some(first_s) })
    }
}

fn repeated(lab: &Lab, once: impl FnMut() -> Result<Took, BenchError>) -> Result<Vec<Took>, BenchError> {
    std::iter::repeat_with(once).take(lab.effort.rounds.max(1)).collect()
}

/// Measures the time to deployment: in every way that this machine supports, or of the NFs of a user's chain.
///
/// `image` is the name of an image in podman or docker, whose program is an NF with two interfaces. Without
/// it these runtimes are skipped: the experiment fetches and builds no image. What needs this program is
/// skipped where the lab has none.
///
/// # Errors
/// When a user's chain cannot run at all. The experiment's own deployments are skipped where they fail, and
/// the figure says why.
pub fn deploy(lab: &mut Lab, chain: Option<&Path>, image: Option<&str>) -> Result<Figure, BenchError> {
    let mut figure = sheet(lab, chain);
    let Some(chain) = chain else {
        for way in Deployment::all() {
            let name = way.name();
            lab.tell(&format!("deploy: {name}"));
            match of_way(way, lab, image) {
                Ok(took) => add(&mut figure, name, &took),
                Err(why) => figure.skip(name, why),
            }
        }
        figure.skip("virtual machine", "NFs do not run in VMs yet");
        figure.expected = expected(&figure);
        let first = figure.x.categories.len();
        let of_paper = [("NetVM: application in an idle VM", 4.0), ("NetVM: VM migrated", 8.0)];
        let points = (first..).zip(of_paper).map(|(x, (_, seconds))| (x as f64, seconds));
        figure.paper("NetVM", PAPER, points);
        figure.x.categories.extend(of_paper.map(|(name, _)| name.to_string()));
        figure.add_note(
            "The paper gives two values in words, nearly 4 s and just over 8 s on average; a VM that boots has the \
             highest cost there, without a number in the text.",
        );
        return Ok(figure);
    };
    of_chain(chain, lab, &mut figure)?;
    Ok(figure)
}

/// Measures one way repeatedly.
fn of_way(way: Deployment, lab: &Lab, image: Option<&str>) -> Result<Vec<Took>, String> {
    let nf = |runs: &str, rules: &str| {
        let text = FUNCTION.replace("RULES", rules);
        Script::of_nf(FLOWS, &format!("runs = \"{runs}\"\ninline = '''{text}'''\n"))
    };
    let program = |keys: &str| {
        let nf = lab.relay()?;
        Ok::<_, String>(Script::of_nf(FLOWS, &format!("{nf}{keys}")))
    };
    let click = || match lab.millrace {
        Some(_) => Ok(nf("process", OPEN)),
        None => Err("there is no program to run Click configurations in processes here".to_string()),
    };
    let took = match way {
        Deployment::Rules => in_place(&nf("modular", OPEN), lab),
        Deployment::Swap(shape) => exchanged(&nf("modular", OPEN), Some(shape), lab),
        Deployment::Program => restarted(&program("")?, lab),
        Deployment::Click => restarted(&click()?, lab),
        Deployment::Cold => exchanged(&click()?, None, lab),
        Deployment::Container(runtime) => {
            runtime.works()?;
            let keys = format!("runtime = \"{}\"\n", runtime.name());
            let script = match (image, &lab.millrace) {
                (Some(image), _) if runtime.is_engine() => {
                    Script::of_nf(FLOWS, &format!("image = {}\n{keys}", toml::Value::from(image)))
                }
                (None, _) if runtime.is_engine() => {
                    let why =
                        "it runs images by name: name one that has an NF with two interfaces by --image";
                    return Err(why.into());
                }
                (_, Some(_)) => {
                    let keys = [("runs", "container".into()), ("runtime", runtime.name().into())];
                    click()?.with("nf", &keys).map_err(|error| error.to_string())?
                }
                (_, None) => program(&format!("runs = \"container\"\n{keys}"))?,
            };
            restarted(&script, lab)
        }
    };
    took.map_err(|error| error.to_string())
}

/// Gives the existing element rules that let packets through.
fn in_place(script: &Script, lab: &Lab) -> Result<Vec<Took>, BenchError> {
    let chain = LiveChain::start_script(script, &lab.setting())?;
    let took = repeated(lab, || {
        chain.write("nf/rules.config", SHUT)?;
        std::thread::sleep(RUN_OUT);
        let (before, start) = (chain.report().sent(), Instant::now());
        chain.write("nf/rules.config", OPEN)?;
        Took::first(&chain, "the filter", before, start)
    });
    trial::ended(lab, chain)?;
    took
}

/// Ends the running chain, and starts one that has the NF.
fn exchanged(script: &Script, shape: Option<Shape>, lab: &Lab) -> Result<Vec<Took>, BenchError> {
    let setting = RunOptions { shape, ..lab.setting() };
    let empty = Script::of_nf(FLOWS, "inline = \"FromDevice(0) -> ToDevice(1);\"\n");
    repeated(lab, || {
        let old = LiveChain::start_script(&empty, &setting)?;
        Took::first(&old, "the chain before", 0, Instant::now())?;
        let start = Instant::now();
        trial::ended(lab, old)?;
        let new = LiveChain::start_script(script, &setting)?;
        let took = Took::first(&new, "the chain", 0, start)?;
        trial::ended(lab, new).map(|()| took)
    })
}

/// Stops the NF and starts it again in a running chain.
fn restarted(script: &Script, lab: &Lab) -> Result<Vec<Took>, BenchError> {
    let chain = LiveChain::start_script(script, &lab.setting())?;
    let instance = chain.instance("nf")?;
    await_state(&instance, NfState::Up)?;
    let took = restarts(&chain, &instance, lab);
    trial::ended(lab, chain)?;
    took
}

fn restarts(chain: &LiveChain, instance: &Instance, lab: &Lab) -> Result<Vec<Took>, BenchError> {
    let (name, element) = (&instance.spec.name, format!("{}/process", instance.spec.name));
    repeated(lab, || {
        chain.want(instance, false);
        await_state(instance, NfState::Stopped)?;
        let (before, start) = (out_of(&chain.report(), &element), Instant::now());
        chain.want(instance, true);
        await_state(instance, NfState::Up)?;
        let hello_s = Some(start.elapsed().as_secs_f64());
        // Packets do not pass through observers, whether those run or not.
        let first_s = match instance.spec.terms.observes() {
            true => None,
            false => {
                let count = |report: &worker::report::Report| out_of(report, &element);
                Some(chain.await_growth(&format!("NF `{name}`"), before, start, count)?)
            }
        };
        Ok(Took { hello_s, first_s })
    })
}

/// Measures the start of a user's whole chain, and the restart of each of its NFs.
fn of_chain(path: &Path, lab: &mut Lab, figure: &mut Figure) -> Result<(), BenchError> {
    let script = Script::of_file(path)?;
    // Packets that bypass an NF while it is down do not show that it works.
    let with_drops = |script: Script, nf: &String| -> Result<Script, BenchError> {
        if script.runs_as_elements(nf)? {
            Ok(script)
        } else {
            script.with(nf, &[("when_down", "drop".into())])
        }
    };
    let script = script.nfs()?.iter().try_fold(script, with_drops)?;
    lab.tell("deploy: the whole chain");
    let setting = lab.setting();
    let whole = repeated(lab, || {
        let start = Instant::now();
        let chain = LiveChain::start_script(&script, &setting)?;
        let took = Took::first(&chain, "the chain", 0, start)?;
        trial::ended(lab, chain).map(|()| took)
    })?;
    add(figure, "the whole chain".into(), &whole);
    let chain = LiveChain::start_script(&script, &setting)?;
    chain.await_nfs()?;
    for instance in chain.instances() {
        let name = instance.spec.name.clone();
        lab.tell(&format!("deploy: {name}"));
        if instance.spec.command.is_none() {
            figure.skip(name, "it is started by somebody else, and attaches");
            continue;
        }
        match restarts(&chain, &instance, lab) {
            Ok(took) => add(figure, name, &took),
            Err(why) => figure.skip(name, why),
        }
    }
    for nf in script.nfs()? {
        if script.runs_as_elements(&nf)? {
            figure.skip(nf, "it runs as elements of this process, and starts with the chain");
        }
    }
    trial::ended(lab, chain)
}

/// A deployment's place on the axis, with what it took.
fn add(figure: &mut Figure, name: String, took: &[Took]) {
    let x = figure.x.categories.len() as f64;
    figure.x.categories.push(name);
    let hello = Point::of(x, took.iter().filter_map(|took| took.hello_s), false);
    let first = Point::of(x, took.iter().filter_map(|took| took.first_s), false);
    for (series, point) in figure.series.iter_mut().zip([hello, first]) {
        series.points.extend(point);
    }
}

fn expected(figure: &Figure) -> Vec<Expectation> {
    // The median until the first packet, by name.
    let median = |name: &str| {
        let at = figure.x.categories.iter().position(|known| known == name)?;
        figure.at(FIRST, at as f64)
    };
    let pairs = [
        (Deployment::Rules.name(), Deployment::Click.name()),
        (Deployment::Rules.name(), Deployment::Swap(Shape::Modular).name()),
        (Deployment::Program.name(), Deployment::Container(Runtime::Crun).name()),
        (Deployment::Program.name(), Deployment::Container(Runtime::Runc).name()),
    ];
    let faster = |(one, other): (String, String)| {
        let (sooner, later) = (median(&one)?, median(&other)?);
        let told = format!("{one} ({}) is there sooner than {other} ({})", ms(sooner), ms(later));
        Some(Expectation::of_times(told, sooner < later))
    };
    let mut all: Vec<Expectation> = pairs.into_iter().filter_map(faster).collect();
    let first = figure.series(FIRST).map_or(&[][..], |first| &first.points);
    let slowest = first.iter().map(|point| point.y.median).fold(0.0, f64::max);
    if !first.is_empty() {
        let told =
            format!("every way takes less than the 4 s of an application in an idle VM: {}", ms(slowest));
        all.push(Expectation::of_times(told, slowest < 4.0));
    }
    all
}

fn sheet(lab: &Lab, chain: Option<&Path>) -> Figure {
    let chain = chain.map(|chain| format!(" {}", chain.display())).unwrap_or_default();
    let repeats = lab.effort.rounds;
    Figure {
            name: "netvm-deploy".into(),
            title: "Time to NF deployment".into(),
            about: "From the order to start an NF until its host has heard its hello, and until the first packet has \
                    come out of it; packets arrive without end from memory."
                .into(),
            source: Some("NetVM (IEEE TNSM 2015), figure 17".into()),
            command: format!("millrace bench deploy{chain} --repeats {repeats}"),
            x: Axis::names("deployment", [""; 0]),
            y: Axis::log("time", "s"),
            series: [HELLO, FIRST].map(|name| Series::own(name, vec![])).to_vec(),
            settings: vec![
                ("repeats".into(), repeats.to_string()),
                ("burst".into(), lab.setting().burst.to_string()),
            ],
            notes: vec![
                "Starts of processes and containers are restarts in a chain that runs: files are in the page cache, and the \
                 container runtime has been tried out. An exchanged chain opens its ports and packet memory anew."
                    .into(),
            ],
            ..Figure::default()
        }
}

fn ms(seconds: f64) -> String {
    format!("{:.3} ms", seconds * 1e3)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::experiment::Effort;

    fn deployed(chain: Option<&Path>) -> Result<Figure, BenchError> {
        let (effort, mut tell) = (Effort { rounds: 2, ..Effort::MINIATURE }, |_: &str| {});
        let mut lab = Lab::new(effort, Path::new(""), &mut tell);
        // Not pinned to a core: other tests run at the same time.
        lab.machine.cores.clear();
        deploy(&mut lab, chain, None)
    }

    #[test]
    fn rules_in_place_are_there_before_an_exchanged_chain() {
        let figure = deployed(None).expect("a figure");
        assert!(figure.holds() && figure.expected.len() >= 2, "{figure:#?}");
        let told = |what: &str| figure.skipped.iter().find(|skipped| skipped.what.contains(what));
        // A library test has no program to start.
        assert!(told("process").is_some_and(|skipped| skipped.why.contains("no program")));
        assert!(told("virtual machine").is_some());
        let own = figure.series("until the first packet").expect("there");
        assert_eq!(own.points.len(), 3, "{figure:#?}");
        let paper = figure.series("NetVM").expect("there");
        assert_eq!(paper.points[1].y.median, 8.0);
        assert_eq!(figure.x.value(paper.points[1].x), "NetVM: VM migrated");
    }

    #[test]
    fn a_chain_of_the_users_is_measured() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("chain.toml");
        let text = "links = [\"in -> [0]nf[1] -> out\"]\n[ports]\nin = { traffic = { flows = 5 } }\n\
                    out = { discard = true }\n[nf.nf]\ninline = \"FromDevice(0) -> ToDevice(1);\"\n";
        std::fs::write(&path, text).expect("written");
        let figure = deployed(Some(&path)).expect("a figure");
        assert_eq!(figure.x.categories, ["the whole chain"]);
        assert!(figure.skipped[0].why.contains("elements of this process"), "{figure:#?}");
        std::fs::write(&path, text.replace("ToDevice", "ToDvice")).expect("written");
        let error = deployed(Some(&path)).expect_err("refused").to_string();
        assert!(error.contains("ToDvice"), "{error}");
    }
}
