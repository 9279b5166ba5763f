//! A user's chain, several times in a row: throughput over the length of a chain.

use super::lab::{Case, Lab, Mode, trial};
use super::script::Script;
use crate::BenchError;
use crate::chain_file;
use crate::figure::{Axis, Figure};
use crate::start::failed;
use std::path::{Path, PathBuf};

/// The path of packets through a chain file, from a port with generated traffic to one that discards.
struct ChainPath {
    from: String,
    to: String,
    /// The NFs on the path, each with the names of its interfaces as in links.
    stops: Vec<Stop>,
}

#[derive(Clone, PartialEq, Eq, Debug)]
struct Stop {
    enter: String,
    nf: String,
    leave: String,
}

impl Stop {
    /// Parses `[0]nf[1]`.
    fn read(text: &str) -> Option<Stop> {
        let rest = text.trim();
        let (enter, rest) = match rest.strip_prefix('[') {
            Some(inner) => inner.split_once(']')?,
            None => ("", rest),
        };
        let (nf, leave) = match rest.split_once('[') {
            Some((nf, inner)) => (nf, inner.strip_suffix(']')?),
            None => (rest, ""),
        };
        let bracketed = |name: &str| if name.is_empty() { String::new() } else { format!("[{name}]") };
        Some(Stop { enter: bracketed(enter), nf: nf.trim().into(), leave: bracketed(leave) })
    }
}

/// Measures throughput over the number of times that a chain's NFs are in a row, in every execution mode: all
/// NFs on its only path from traffic to a sink, or one of them.
///
/// # Errors
/// When the file is no chain, or its NFs are not in one row.
pub fn chain(lab: &mut Lab, path: &Path, nf: Option<&str>, most: usize) -> Result<Vec<Figure>, BenchError> {
    let script = Script::of_file(path)?;
    // Errors of the chain are reported before any measurement.
    let way = chain_path(&script, nf)?;
    let modes = [Mode::CACHED, Mode::FUSED, Mode::MODULAR, Mode::PROCESS];
    let names: Vec<&str> = way.stops.iter().map(|stop| stop.nf.as_str()).collect();
    let cases = (1..=most.max(1)).flat_map(|count| modes.map(|mode| (count, mode)));
    let (script, way_of) = (&script, &way);
    let cases = cases.map(|(count, mode)| {
        Case::point(mode.name, count as f64, move |lab| {
            let path = lay_out(lab, script, way_of, count, mode)?;
            trial::saturation(lab, &path, &lab.run_options(mode, None))
        })
    });
    let sheet = lab.sheet(
        "chain",
        &format!("{} in a row", names.join(", ")),
        &format!("{}: its NFs so many times in a row, in every mode.", path.display()),
        (Axis::linear("times in a row", ""), Axis::linear("throughput", "Mpps")),
    );
    let mut figure = lab.saturate(sheet, cases);
    figure.notes.extend(super::growth::per_nf(&figure, "time that they stand in a row"));
    Ok(vec![figure])
}

/// The path through the chain, or through one of its NFs alone.
fn chain_path(script: &Script, nf: Option<&str>) -> Result<ChainPath, BenchError> {
    let table = script.table()?;
    let told = |why: String| BenchError::BadText(format!("{}: {why}", script.path.display()));
    let port = |key: &str| {
        let ports = table.get("ports").and_then(toml::Value::as_table)?;
        ports.iter().find(|(_, port)| port.get(key).is_some()).map(|(name, _)| name.clone())
    };
    let need = |found: Option<String>, what: &str| {
        found.ok_or_else(|| told(format!("no port has `{what}`: the chain needs one that does")))
    };
    let (from, to) = (need(port("traffic"), "traffic = { … }")?, need(port("discard"), "discard = true")?);
    let links = table.get("links").and_then(toml::Value::as_array).cloned().unwrap_or_default();
    let links = links.iter().filter_map(toml::Value::as_str);
    let links: Vec<Vec<&str>> = links.map(|link| link.split("->").map(str::trim).collect()).collect();
    let stops = match nf {
        Some(nf) => {
            let known = script.nfs()?;
            if !known.iter().any(|one| one == nf) {
                return Err(told(format!("there is no NF `{nf}`: name one of {}", known.join(", "))));
            }
            let parts =
                links.iter().flatten().filter_map(|part| Stop::read(part)).filter(|stop| stop.nf == nf);
            let (mut enter, mut leave) = (String::new(), String::new());
            for stop in parts {
                enter = if enter.is_empty() { stop.enter } else { enter };
                leave = if leave.is_empty() { stop.leave } else { leave };
            }
            vec![Stop { enter, nf: nf.into(), leave }]
        }
        None => {
            let [parts] = links.as_slice() else {
                let why = "its links are no single row from traffic to a sink; name one NF with --nf";
                return Err(told(why.into()));
            };
            let inner = parts.get(1..parts.len().saturating_sub(1)).unwrap_or_default();
            inner.iter().filter_map(|part| Stop::read(part)).collect()
        }
    };
    if stops.is_empty() {
        return Err(told("no NF stands between its ports".into()));
    }
    Ok(ChainPath { from, to, stops })
}

/// Whether a key of an NF is about its process: it means nothing for elements of this one.
fn is_of_process(key: &str) -> bool {
    let known = ["runs", "trust", "cores", "access", "when_down", "reads", "writes", "network"];
    let of_limits = ["memory_mib", "cpu_share", "confine"];
    let key = key.replace('-', "_");
    known.iter().chain(&of_limits).any(|known| key == *known)
}

/// Writes the chain file with the NFs so many times in a row.
fn lay_out(
    lab: &Lab,
    script: &Script,
    way: &ChainPath,
    count: usize,
    mode: Mode,
) -> Result<PathBuf, BenchError> {
    if mode == Mode::PROCESS && lab.millrace.is_none() {
        return Err(failed("NFs in processes need the program `millrace`"));
    }
    let table = script.table()?;
    let folder = std::path::absolute(&script.path).unwrap_or_else(|_| script.path.clone());
    let folder = folder.parent().unwrap_or(Path::new("/")).to_path_buf();
    let entry = |from: &str, name: &str| table.get(from).and_then(|all| all.get(name)).cloned();
    let mut nfs = toml::Table::new();
    let mut link = way.from.clone();
    for number in 1..=count {
        for stop in &way.stops {
            let name = format!("{}-{number}", stop.nf);
            link += &format!(" -> {}{name}{}", stop.enter, stop.leave);
            let mut nf =
                entry("nf", &stop.nf).and_then(|nf| nf.try_into::<toml::Table>().ok()).unwrap_or_default();
            // File names are relative to the user's chain file, and this one lies elsewhere.
            for key in ["click", "program"] {
                if let Some(file) = nf.get(key).and_then(toml::Value::as_str).map(|file| folder.join(file))
                    && file.exists()
                {
                    nf.insert(key.into(), file.display().to_string().into());
                }
            }
            let is_click = nf.contains_key("click") || nf.contains_key("inline");
            if is_click {
                nf.retain(|key, _| !is_of_process(key));
                if mode == Mode::PROCESS {
                    let cores = chain_file::cores(&lab.other_cores());
                    let keys = [("runs", "process".into()), ("trust", "lab".into()), ("cores", cores)];
                    nf.extend(chain_file::table(keys));
                }
            }
            nfs.insert(name, nf.into());
        }
    }
    link += &format!(" -> {}", way.to);
    let port = |name: &String| {
        let mut port = entry("ports", name)?;
        files_of_port(&mut port, &folder);
        Some((name.clone(), port))
    };
    let ports = [&way.from, &way.to].into_iter().filter_map(port);
    let ports = toml::Value::Table(ports.collect());
    let chain = chain_file::table([("links", vec![link].into()), ("ports", ports), ("nf", nfs.into())]);
    let name = format!("chain-{count}-{}", mode.name.replace([' ', ','], "-"));
    chain_file::write_chain(&lab.folder().join(name), &chain)
}

/// Makes the files that a port reads independent of where its chain file lies.
fn files_of_port(port: &mut toml::Value, folder: &Path) {
    let absolute = |file: Option<&mut toml::Value>| {
        if let Some(toml::Value::String(file)) = file {
            *file = folder.join(&*file).display().to_string();
        }
    };
    absolute(port.get_mut("capture"));
    if let Some(acl) = port.get_mut("traffic").and_then(|traffic| traffic.get_mut("acl")) {
        absolute(acl.get_mut("rules"));
        absolute(acl.get_mut("trace"));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::experiment::Effort;

    #[test]
    fn files_of_ports_are_found_from_anywhere() {
        let mut port: toml::Value = toml::from_str(
            "capture = \"in.pcap\"\nwrite = \"out.pcap\"\n[traffic.acl]\nrules = \"a.rules\"\ntrace = \"/t\"\n",
        )
        .expect("a table");
        files_of_port(&mut port, Path::new("/chains"));
        let of = |key: &str| port.get(key).and_then(toml::Value::as_str);
        assert_eq!((of("capture"), of("write")), (Some("/chains/in.pcap"), Some("out.pcap")));
        let acl = port["traffic"]["acl"].as_table().expect("a table");
        assert_eq!((acl["rules"].as_str(), acl["trace"].as_str()), (Some("/chains/a.rules"), Some("/t")));
    }

    const CHAIN: &str = "links = [\"in -> [0]a[1] -> [x]b -> out\"]\n[ports]\nin = { traffic = { flows = 9 } }\n\
                         out = { discard = true }\n[nf.a]\ninline = \"FromDevice(0) -> ToDevice(1);\"\n\
                         [nf.b]\ninline = \"FromDevice(x) -> ToDevice(y);\"\n";

    #[test]
    fn a_way_is_read_from_links() {
        let found = chain_path(&Script::new(CHAIN), None).expect("a row");
        assert_eq!((found.from.as_str(), found.to.as_str(), found.stops.len()), ("in", "out", 2));
        let b = Stop { enter: "[x]".into(), nf: "b".into(), leave: String::new() };
        assert_eq!(found.stops[1], b);
        let parted = CHAIN.replace("[1] -> [x]b -> out\"", "[1] -> out\", \"in2 -> [x]b[y] -> out\"");
        let error = chain_path(&Script::new(parted.clone()), None).err().expect("refused").to_string();
        assert!(error.contains("--nf"), "{error}");
        let one = chain_path(&Script::new(parted), Some("b")).expect("one NF");
        assert_eq!(one.stops, [Stop { enter: "[x]".into(), nf: "b".into(), leave: "[y]".into() }]);
        let error = chain_path(&Script::new(CHAIN), Some("c")).err().expect("refused").to_string();
        assert!(error.contains("a, b"), "{error}");
        let error =
            chain_path(&Script::new(CHAIN.replace("discard = true", "")), None).err().expect("refused");
        assert!(error.to_string().contains("discard"), "{error}");
    }

    #[test]
    fn nfs_of_the_users_stand_in_a_row() {
        let folder = tempfile::tempdir().expect("a folder");
        let file = folder.path().join("own.toml");
        std::fs::write(&file, CHAIN.replace("[x]b -> out", "[x]b[y] -> out")).expect("written");
        let mut tell = |_: &str| {};
        let mut lab = Lab::new(Effort::MINIATURE, folder.path(), &mut tell);
        let figure = chain(&mut lab, &file, None, 2).expect("figures").remove(0);
        let modular = figure.series("modular").expect("measured");
        assert!(modular.points.len() == 2 && modular.at(2.0).is_some_and(|mpps| mpps > 0.0), "{figure:#?}");
        assert!(figure.skipped.iter().all(|skipped| skipped.what.starts_with("processes")), "{figure:#?}");
        let written =
            std::fs::read_to_string(folder.path().join("chain-2-modular/chain.toml")).expect("there");
        assert!(
            written.contains("in -> [0]a-1[1] -> [x]b-1[y] -> [0]a-2[1] -> [x]b-2[y] -> out"),
            "{written}"
        );
    }
}
