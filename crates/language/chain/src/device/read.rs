//! The tables `[device.NAME]` of a chain file.

use crate::l3_interface;
use crate::model::{DeviceDecl, DeviceKind, DevicePort, L3InterfaceDecl, Otherwise, PortDecl, Sees, Sends};
use crate::table::{Keys, Value, check_name, misplaced, one_of};
use click::config::NameTable;
use click::filter;
use diag::{Diagnostics, Span, Spanned};
use toml::de::DeValue;

/// The layers that `peels` may name.
const LAYERS: [&str; 6] = ["vlan", "qinq", "mpls", "gre", "vxlan", "geneve"];
/// The values of `sends` that are not a port.
const STEER_POLICIES: [&str; 4] = ["round-robin", "opposite", "flow-hash", "symmetric-flow-hash"];

/// Reads the entries of `[device]`.
pub fn read(mut keys: Keys<'_>, ports: &[PortDecl], diags: &mut Diagnostics) -> Vec<DeviceDecl> {
    let mut devices = vec![];
    for value in keys.rest() {
        check_name("device", value.key, value.key_span, diags);
        let before = diags.errors();
        let Some(mut keys) = value.keys(format!("device `{}`", value.key), diags) else { continue };
        let mut device = Reader { value, ports, diags }.device(&mut keys);
        keys.finish(diags, misplaced);
        device.broken |= diags.errors() > before;
        devices.push(device);
    }
    devices
}

struct Reader<'a, 'b> {
    value: Value<'a>,
    /// The ports of the chain.
    ports: &'b [PortDecl],
    diags: &'b mut Diagnostics,
}

/// The keys of how a device sends.
struct Sending<'a> {
    sends: Option<Value<'a>>,
    across: Option<Value<'a>>,
    otherwise: Option<Value<'a>>,
}

impl<'a> Reader<'a, '_> {
    fn device(&mut self, keys: &mut Keys<'a>) -> DeviceDecl {
        let (kind, mut ports) = self.kind(keys);
        let is_rootless = kind == Some(DeviceKind::Rootless);
        let receives = keys.take("receives");
        let wants = receives.and_then(|receives| self.receives(receives, &mut ports, is_rootless));
        let mut rooted = |key: &'static str| {
            let value = keys.take(key)?;
            if is_rootless {
                let message = format!("a rootless device has no ports, and `{key}` is about ports");
                self.diags.error(value.key_span, message).help(format!("leave `{key}` out"));
                return None;
            }
            Some(value)
        };
        let sees = rooted("sees");
        let sending =
            Sending { sends: rooted("sends"), across: rooted("across"), otherwise: rooted("otherwise") };
        let sees = sees.and_then(|sees| self.sees(sees)).unwrap_or(Sees::Inbound);
        let sends = self.sends(kind, &ports, &sending);
        let (peels, unpeeled) = (keys.take("peels"), keys.take("unpeeled"));
        let (peels, drops_unpeeled) = self.peels(peels, unpeeled);
        let interface = self.l3_interface(keys, is_rootless);
        DeviceDecl {
            name: self.value.key.to_string(),
            span: self.value.key_span,
            broken: kind.is_none(),
            kind: kind.unwrap_or(DeviceKind::Rootless),
            ports,
            wants,
            sees,
            peels,
            drops_unpeeled,
            sends,
            l3_interface: interface,
        }
    }

    fn l3_interface(&mut self, keys: &mut Keys<'a>, is_rootless: bool) -> Option<L3InterfaceDecl> {
        let interface = l3_interface::read(keys, &format!("device `{}`", self.value.key), self.diags)?;
        if is_rootless {
            let message = "a rootless device has no ports, and `addresses` is about ports";
            self.diags.error(interface.span, message).help("leave `addresses` out");
            return None;
        }
        Some(interface)
    }

    fn kind(&mut self, keys: &mut Keys<'a>) -> (Option<DeviceKind>, Vec<DevicePort>) {
        let kinds = [
            (keys.take("direct"), DeviceKind::Direct),
            (keys.take("bonded"), DeviceKind::Bonded),
            (keys.take("bridged"), DeviceKind::Bridged),
            (keys.take("rootless"), DeviceKind::Rootless),
        ];
        let mut given = kinds.into_iter().filter_map(|(value, kind)| Some((value?, kind)));
        let Some((value, kind)) = given.next() else {
            if !keys.is_damaged() {
                let message = format!("device `{}` does not say what it is", self.value.key);
                self.diags.error(self.value.key_span, message).help(
                    "add `direct = \"PORT\"`, `bonded = [\"PORT\", \"PORT\"]`, `bridged = [\"PORT\", \"PORT\"]` or \
                     `rootless = true`",
                );
            }
            return (None, vec![]);
        };
        for (other, _) in given {
            self.diags
                .error(other.key_span, format!("`{}` and `{}` in one device", value.key, other.key))
                .with_note(value.key_span, format!("`{}` is here", value.key))
                .help("a device is one of them; make two devices of it: a port may belong to several");
        }
        let names = match kind {
            DeviceKind::Direct => value.text(self.diags).into_iter().collect(),
            DeviceKind::Bonded | DeviceKind::Bridged => value.texts(self.diags),
            DeviceKind::Rootless => {
                if value.truth(self.diags) == Some(false) {
                    self.diags
                        .error(value.span(), "`rootless` is `true` or left out")
                        .help("a device with ports says `direct`, `bonded` or `bridged`");
                }
                return (Some(kind), vec![]);
            }
        };
        let few = matches!(value.get(), DeValue::Array(items) if items.len() < 2);
        if kind != DeviceKind::Direct && few {
            let message = format!("a {} device has two ports or more", value.key);
            let help = "name another port, or write `direct = \"PORT\"`";
            self.diags.error(value.span(), message).help(help);
        }
        let mut ports: Vec<DevicePort> = vec![];
        for name in names {
            let Some(port) = self.port(&name) else { continue };
            if let Some(before) = ports.iter().find(|known| known.port == port) {
                let message = format!("port `{name}` is there twice");
                self.diags.error(name.span, message).with_note(before.name.span, "the other place");
                continue;
            }
            ports.push(DevicePort { port, name, wants: None });
        }
        (Some(kind), ports)
    }

    /// The number of a port in the chain.
    fn port(&mut self, name: &Spanned) -> Option<usize> {
        let names = self.ports.iter().map(|port| port.name.as_str());
        let known: Vec<(&str, usize)> = names.zip(0..).collect();
        let help = format!("declare it in [ports]: `{name} = {{ ... }}`");
        one_of(name, &known, format!("there is no port `{name}`"), &help, self.diags)
    }

    /// The number of a port in the device's own list.
    fn own(&mut self, name: &Spanned, ports: &[DevicePort]) -> Option<usize> {
        let names: Vec<&str> = ports.iter().map(|of| of.name.as_str()).collect();
        let known: Vec<(&str, usize)> = names.iter().copied().zip(0..).collect();
        let wrong = format!("device `{}` has no port `{name}`", self.value.key);
        one_of(name, &known, wrong, &format!("its ports are {}", names.join(", ")), self.diags)
    }

    /// Reads `receives`: one policy for all ports, or a table with one for each port.
    fn receives(&mut self, value: Value<'a>, ports: &mut [DevicePort], is_rootless: bool) -> Option<Spanned> {
        if !matches!(value.get(), DeValue::Table(_)) || is_rootless {
            let wants = value.text(self.diags).and_then(|text| self.policy(text))?;
            ports.iter_mut().for_each(|port| port.wants = Some(wants.clone()));
            return Some(wants);
        }
        let before = self.diags.errors();
        let mut said = vec![false; ports.len()];
        for entry in value.keys("`receives`", self.diags).map_or(vec![], |mut keys| keys.rest()) {
            let wants = entry.text(self.diags).and_then(|text| self.policy(text));
            let Some(at) = self.own(&Spanned::derived(entry.key, entry.key_span), ports) else { continue };
            (said[at], ports[at].wants) = (true, wants);
        }
        for (port, _) in ports.iter().zip(said).filter(|(_, said)| !said) {
            let name = &port.name;
            // No help is shown after a misspelt name: the name that was meant is not known.
            if self.diags.errors() == before {
                self.diags
                    .error(value.key_span, format!("`receives` says nothing of port `{name}`"))
                    .with_note(name.span, "the port is named here")
                    .help(format!("add `{name} = \"all\"`, or what is wanted of it"));
            }
        }
        None
    }

    /// A policy without errors; `None` where the device receives everything.
    fn policy(&mut self, text: Spanned) -> Option<Spanned> {
        let names = NameTable::new();
        let pattern = filter::parse(&text, &names.scoped(""), self.diags)?;
        (pattern.expr != filter::Expr::True).then_some(text)
    }

    fn choice<T: Copy>(&mut self, value: Value<'a>, what: &str, known: &[(&str, T)]) -> Option<(Spanned, T)> {
        let text = value.text(self.diags)?;
        let quoted: Vec<String> = known.iter().map(|(known, _)| format!("`{known}`")).collect();
        let help = format!("write {}", quoted.join(" or "));
        let found = one_of(&text, known, format!("{what} `{text}`"), &help, self.diags)?;
        Some((text, found))
    }

    fn sees(&mut self, value: Value<'a>) -> Option<Sees> {
        let known = [("inbound", Sees::Inbound), ("outbound", Sees::Outbound), ("both", Sees::Both)];
        self.choice(value, "there is no traffic", &known).map(|(_, sees)| sees)
    }

    fn peels(&mut self, peels: Option<Value<'a>>, unpeeled: Option<Value<'a>>) -> (Vec<Spanned>, bool) {
        let items = match peels.map(|peels| (peels, peels.get())) {
            Some((one, DeValue::String(_))) => vec![one],
            Some((list, _)) => list.list(self.diags).unwrap_or_default(),
            None => vec![],
        };
        let items: Vec<Spanned> = items
            .into_iter()
            .filter_map(|item| self.choice(item, "nothing here can peel", &LAYERS.map(|layer| (layer, ()))))
            .map(|(layer, ())| layer)
            .collect();
        let drops = unpeeled.and_then(|unpeeled| {
            if peels.is_none() {
                self.diags
                    .error(
                        unpeeled.key_span,
                        "`unpeeled` says what becomes of frames that `peels` does not fit",
                    )
                    .help("add `peels = [\"LAYER\"]`, or leave `unpeeled` out");
            }
            self.choice(unpeeled, "such frames cannot", &[("pass", false), ("drop", true)])
        });
        (items, drops.is_some_and(|(_, drops)| drops))
    }

    fn sends(&mut self, kind: Option<DeviceKind>, ports: &[DevicePort], sending: &Sending<'_>) -> Sends {
        let given = sending.sends.and_then(|sends| sends.text(self.diags));
        let default = match kind {
            Some(DeviceKind::Bridged) => "opposite",
            Some(DeviceKind::Bonded) => "round-robin",
            _ => "",
        };
        let way = given.as_ref().map_or(default, Spanned::as_str);
        if way != "opposite" {
            for only in [sending.across, sending.otherwise].into_iter().flatten() {
                self.diags
                    .error(
                        only.key_span,
                        format!("`{}` is for devices that send to the opposite side", only.key),
                    )
                    .help(format!("leave `{}` out, or write `sends = \"opposite\"`", only.key));
            }
        }
        match way {
            "" => Sends::To(0),
            "round-robin" => Sends::RoundRobin,
            "flow-hash" => Sends::FlowHash { symmetric: false },
            "symmetric-flow-hash" => Sends::FlowHash { symmetric: true },
            "opposite" => {
                let span = given.as_ref().map_or(self.value.key_span, |given| given.span);
                self.opposite(span, ports, sending)
            }
            _ => {
                let Some(name) = &given else { return Sends::To(0) };
                let names = ports.iter().map(|of| of.name.as_str()).zip(0..);
                let known: Vec<(&str, usize)> =
                    STEER_POLICIES.map(|policy| (policy, 0)).into_iter().chain(names).collect();
                let words: Vec<String> = known.iter().map(|(known, _)| format!("`{known}`")).collect();
                let wrong = format!("device `{}` cannot send by `{name}`", self.value.key);
                let help = format!("write one of {}", words.join(", "));
                Sends::To(one_of(name, &known, wrong, &help, self.diags).unwrap_or(0))
            }
        }
    }

    fn opposite(&mut self, span: Span, ports: &[DevicePort], sending: &Sending<'_>) -> Sends {
        let mut sides: Vec<Option<usize>> = match ports.len() {
            2 => vec![Some(1), Some(0)],
            many => vec![None; many],
        };
        let before = self.diags.errors();
        let across = sending.across.and_then(|across| across.keys("`across`", self.diags));
        for entry in across.map_or(vec![], |mut keys| keys.rest()) {
            let to = entry.text(self.diags).and_then(|to| self.own(&to, ports));
            let from = self.own(&Spanned::derived(entry.key, entry.key_span), ports);
            if let (Some(from), Some(to)) = (from, to) {
                sides[from] = Some(to);
            }
        }
        if let Some(lost) = sides.iter().position(Option::is_none)
            && self.diags.errors() == before
            && ports.len() > 1
        {
            let (lost_name, other) = (&ports[lost].name, &ports[usize::from(lost == 0)].name);
            let message = format!("nothing says which port is across from `{lost_name}`");
            let help = format!("add `across = {{ {lost_name} = \"{other}\" }}`, with an entry for each port");
            self.diags.error(span, message).help(help);
        } else if ports.len() == 1 && span != self.value.key_span {
            self.diags.error(span, "one port has no opposite side").help("leave `sends` out");
        }
        let otherwise = sending.otherwise.and_then(|otherwise| otherwise.text(self.diags));
        let otherwise = otherwise.and_then(|text| match text.as_str() {
            "drop" => Some(Otherwise::Drop),
            "all" => Some(Otherwise::All),
            _ => self.own(&text, ports).map(Otherwise::To),
        });
        let across = sides.into_iter().map(|to| to.unwrap_or(0)).collect();
        Sends::Opposite { across, otherwise: otherwise.unwrap_or(Otherwise::Drop) }
    }
}
