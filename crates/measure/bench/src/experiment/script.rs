//! The chain file of an experiment: its own text, or a user's with some keys changed.

use crate::BenchError;
use chain::SourceTexts;
use std::path::{Path, PathBuf};

/// The text of a chain file, which may differ from the file on disk.
#[derive(Clone, Debug)]
pub struct Script {
    /// The path of the file, which need not exist: file names in the text are relative to its folder.
    pub path: PathBuf,
    text: String,
}

impl Script {
    /// A chain file with this text, without a file on disk.
    pub fn new(text: impl Into<String>) -> Script {
        Script { path: "experiment.toml".into(), text: text.into() }
    }

    /// A chain of one NF with these keys in its section, between generated 64-byte frames of so many flows
    /// and a port that discards.
    pub fn of_nf(flows: u32, keys: &str) -> Script {
        Script::new(format!(
            "links = [\"in -> [0]nf[1] -> out\"]\n[ports]\nin = {{ traffic = {{ flows = {flows}, size = \"64\" }} }}\n\
             out = {{ discard = true }}\n[nf.nf]\n{keys}"
        ))
    }

    /// Reads a user's chain file.
    ///
    /// # Errors
    /// When the file cannot be read.
    pub fn of_file(path: &Path) -> Result<Script, BenchError> {
        let failed = |cause| BenchError::file("read", path, cause);
        Ok(Script { path: path.to_owned(), text: std::fs::read_to_string(path).map_err(failed)? })
    }

    /// The sources of the chain, with this text in place of the file's.
    pub fn sources(&self) -> SourceTexts {
        let mut sources = SourceTexts::of_files();
        sources.put(&self.path, self.text.as_str());
        sources
    }

    /// The names of the chain's NFs, in alphabetical order.
    ///
    /// # Errors
    /// When it is no chain file.
    pub fn nfs(&self) -> Result<Vec<String>, BenchError> {
        let table = self.table()?;
        let nfs = table.get("nf").and_then(toml::Value::as_table);
        Ok(nfs.map(|nfs| nfs.keys().cloned().collect()).unwrap_or_default())
    }

    /// Whether an NF runs as elements of this process.
    ///
    /// # Errors
    /// When it is no chain file.
    pub fn runs_as_elements(&self, nf: &str) -> Result<bool, BenchError> {
        let table = self.table()?;
        let Some(nf) = table.get("nf").and_then(|nfs| nfs.get(nf)) else { return Ok(false) };
        let is_click = nf.get("click").or(nf.get("inline")).is_some();
        let runs = nf.get("runs").and_then(toml::Value::as_str).unwrap_or("modular");
        Ok(is_click && ["modular", "fused"].contains(&runs))
    }

    /// A copy in which these keys of an NF have these values.
    ///
    /// # Errors
    /// When it is no chain file, or has no such NF.
    pub fn with(&self, nf: &str, keys: &[(&str, toml::Value)]) -> Result<Script, BenchError> {
        let keys = keys.iter().map(|(key, value)| ((*key).to_string(), value.clone()));
        self.changed(nf, |entry| entry.extend(keys))
    }

    /// A copy without these keys of an NF.
    ///
    /// # Errors
    /// When it is no chain file, or has no such NF.
    pub fn without(&self, nf: &str, keys: &[&str]) -> Result<Script, BenchError> {
        self.changed(nf, |entry| entry.retain(|key, _| !keys.contains(&key)))
    }

    fn changed(&self, nf: &str, change: impl FnOnce(&mut toml::Table)) -> Result<Script, BenchError> {
        let mut table = self.table()?;
        let entry = table.get_mut("nf").and_then(|nfs| nfs.get_mut(nf)).and_then(toml::Value::as_table_mut);
        let Some(entry) = entry else {
            let (path, known) = (self.path.display(), self.nfs()?.join(", "));
            return Err(BenchError::contradiction(format!("{path} has no NF `{nf}`: name one of {known}")));
        };
        change(entry);
        Ok(Script { path: self.path.clone(), text: table.to_string() })
    }

    /// The chain file as a TOML table.
    ///
    /// # Errors
    /// When it is no chain file.
    pub fn table(&self) -> Result<toml::Table, BenchError> {
        self.text.parse::<toml::Table>().map_err(|error| {
            let (path, why) = (self.path.display(), error.message());
            BenchError::BadText(format!("{path} is no chain file (a Click file alone has no NFs): {why}"))
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_of_an_nf_are_changed_and_nothing_else() {
        let script = Script::new("links = []\n[nf.a]\nruns = \"modular\"\nburst = 3\n[nf.b]\n");
        assert_eq!(script.nfs().expect("a chain file"), ["a", "b"]);
        let other = script.with("a", &[("runs", "process".into()), ("instances", 2.into())]).expect("there");
        let table = other.table().expect("a chain file");
        assert_eq!(table["nf"]["a"]["runs"].as_str(), Some("process"));
        assert_eq!(table["nf"]["a"]["instances"].as_integer(), Some(2));
        assert_eq!(table["nf"]["a"]["burst"].as_integer(), Some(3));
        let fewer = other.without("a", &["burst"]).expect("there").table().expect("a chain file");
        assert!(fewer["nf"]["a"].get("burst").is_none() && fewer["nf"]["a"].get("runs").is_some());
        let error = script.with("c", &[]).expect_err("refused").to_string();
        assert!(error.contains("no NF `c`") && error.contains("a, b"), "{error}");
    }

    #[test]
    fn a_click_file_is_no_chain_file() {
        let script = Script::new("FromDevice(0) -> Discard;");
        assert!(script.nfs().is_err());
    }
}
