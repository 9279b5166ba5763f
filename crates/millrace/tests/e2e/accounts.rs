//! The accounts that `run --json` prints, added up again.

use serde::Deserialize;

/// What `run --json` prints.
#[derive(Debug, Deserialize)]
pub struct Accounts {
    pub received: u64,
    pub sent: u64,
    pub dropped: u64,
    pub imbalance: i64,
    pub slots_lost: u64,
    pub workers: u64,
    pub elements: Vec<Element>,
    pub ports: Vec<Port>,
    pub warnings: Vec<String>,
    pub handlers: serde_json::Map<String, serde_json::Value>,
    pub flow_cache: FlowCache,
}

/// What flow caches did.
#[derive(Debug, Deserialize)]
pub struct FlowCache {
    pub hits: u64,
    pub whole: u64,
    pub templates: u64,
    pub aside: u64,
}

/// An element's counters. Not the program's own type: the words that users read are checked.
#[derive(PartialEq, Debug, Deserialize)]
pub struct Element {
    pub name: String,
    pub input: u64,
    pub received: u64,
    pub made: u64,
    pub outputs: Vec<u64>,
    pub sent: u64,
    pub merged: u64,
    pub held: u64,
    pub dropped: Vec<(String, u64)>,
    pub handed_over: u64,
}

/// A port's counters: packets and bytes.
#[derive(Debug, Deserialize)]
pub struct Port {
    pub name: String,
    pub received: (u64, u64),
    pub sent: (u64, u64),
    pub rx_lost: u64,
    pub tx_errors: u64,
}

impl Element {
    fn dropped_total(&self) -> u64 {
        self.dropped.iter().map(|(_, packets)| packets).sum()
    }
}

impl Accounts {
    /// Reads them.
    pub fn read(json: &[u8]) -> Result<Accounts, serde_json::Error> {
        serde_json::from_slice(json)
    }

    /// An element by its name.
    pub fn element(&self, name: &str) -> &Element {
        self.elements.iter().find(|element| element.name == name).unwrap_or_else(|| {
            let names: Vec<&str> = self.elements.iter().map(|element| element.name.as_str()).collect();
            panic!("no element {name} among {names:?}")
        })
    }

    /// A port's counters, over all elements that use it.
    pub fn port(&self, name: &str) -> Port {
        let mut sum = Port { name: name.into(), received: (0, 0), sent: (0, 0), rx_lost: 0, tx_errors: 0 };
        for port in self.ports.iter().filter(|port| port.name == name) {
            sum.received = (sum.received.0 + port.received.0, sum.received.1 + port.received.1);
            sum.sent = (sum.sent.0 + port.sent.0, sum.sent.1 + port.sent.1);
            sum.rx_lost += port.rx_lost;
            sum.tx_errors += port.tx_errors;
        }
        sum
    }

    /// Whether no packet is missing: at each element, over the whole chain, at the ports, in the pool.
    /// Every drop has a reason.
    pub fn assert_balanced(&self) {
        let sum = |of: fn(&Element) -> u64| self.elements.iter().map(of).sum::<u64>();
        for element in &self.elements {
            let came = element.input + element.received + element.made - element.handed_over;
            let went = element.outputs.iter().sum::<u64>()
                + element.dropped_total()
                + element.sent
                + element.merged
                + element.held;
            assert_eq!(came, went, "the counters of {element:?}");
            assert!(element.dropped.iter().all(|(reason, _)| !reason.is_empty()), "{element:?}");
        }
        assert_eq!(self.received, sum(|element| element.received));
        assert_eq!(self.sent, sum(|element| element.sent));
        assert_eq!(self.dropped, sum(Element::dropped_total));
        let came = self.received + sum(|element| element.made);
        let went = self.sent + self.dropped + sum(|element| element.merged) + sum(|element| element.held);
        assert_eq!(came, went, "the whole chain");
        assert_eq!(
            self.received,
            self.ports.iter().map(|port| port.received.0).sum::<u64>(),
            "{:?}",
            self.ports
        );
        assert_eq!((self.imbalance, self.slots_lost), (0, 0));
    }
}
