//! A configuration as its handlers show it, without its elements' state.

/// The texts of a configuration: for the handlers that have no element's name, as Click's router has them,
/// and for `ports` of elements.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct ConfigurationTexts {
    /// As the user wrote it.
    pub config: String,
    /// Without compound elements and variables.
    pub flat: String,
    /// The packages that it requires.
    pub requirements: Vec<String>,
    /// The ports of each element, in the graph's order.
    pub ports: Vec<String>,
}

impl ConfigurationTexts {
    /// The handlers of a configuration.
    pub const HANDLERS: [&str; 6] = ["version", "list", "config", "flatconfig", "requirements", "handlers"];

    /// The value of a configuration's handler; `names` are its elements' names. `None` if there is no such
    /// handler.
    pub fn read<'a>(&self, handler: &str, names: impl Iterator<Item = &'a str>) -> Option<String> {
        let lines = |lines: Vec<&str>| lines.iter().map(|line| format!("{line}\n")).collect::<String>();
        Some(match handler {
            "version" => env!("CARGO_PKG_VERSION").into(),
            "config" => self.config.clone(),
            "flatconfig" => self.flat.clone(),
            "requirements" => lines(self.requirements.iter().map(String::as_str).collect()),
            "list" => {
                let names: Vec<&str> = names.collect();
                format!("{}\n{}", names.len(), lines(names))
            }
            "handlers" => Self::HANDLERS.iter().map(|name| format!("{name}\tr\n")).collect(),
            _ => return None,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_configuration_s_handlers_read_as_click_writes_them() {
        let texts = ConfigurationTexts {
            config: "q :: Queue; require(ip)".into(),
            requirements: vec!["ip".into()],
            ..ConfigurationTexts::default()
        };
        let read = |handler: &str| texts.read(handler, ["a", "b"].into_iter());
        assert_eq!(read("list").as_deref(), Some("2\na\nb\n"));
        assert_eq!(read("requirements").as_deref(), Some("ip\n"));
        assert_eq!(read("config").as_deref(), Some("q :: Queue; require(ip)"));
        for handler in ConfigurationTexts::HANDLERS {
            assert!(read(handler).is_some(), "{handler}");
            assert!(
                read("handlers").is_some_and(|all| all.contains(&format!("{handler}\tr\n"))),
                "{handler}"
            );
        }
        assert_eq!(read("count"), None);
    }
}
