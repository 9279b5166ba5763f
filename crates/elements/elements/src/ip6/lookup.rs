//! `LookupIP6Route`: IPv6 route lookup.

use super::address;
use super::line::{self, Hop, Network};
use super::table::{HIGH, LOW, PORT, RECORD_BYTES};
use crate::route::table::Routes;
use element::value::written;
use element::{BoxElement, Class, Configure, Element, PortCodes, Row, StateScope, Transparent};
use ir::expr::{anno, record, select};
use ir::{Builder, Table};
use std::net::Ipv6Addr;

/// The class.
pub const CLASS: Class = Class {
    name: "LookupIP6Route",
    summary: "IPv6 routing table",
    page: "\
# LookupIP6Route(ADDR1/LEN1 [GW1] OUT1, ADDR2/LEN2 [GW2] OUT2, ...)

Looks each packet's IPv6 destination annotation up by longest prefix, sets the annotation to the route's
gateway where it has one, and sends the packet out of the route's output.

- **ports**: 1 input, any number of outputs, push
- **arguments**: routes: an address or prefix, a gateway (`::` is none) or nothing, an output number. A route
  replaces an earlier one for its prefix
- **annotations**: reads and writes `DST_IP6`
- **handlers**: `table` (read): the routes; `add` (write): a route, which replaces the one for its prefix; `remove`
  (write): a prefix; `ctrl` (write): lines of `add` or `remove` and what these take, up to the first that is wrong
- **drop reasons**: `no-route`: no prefix covers the address
- **difference**: `table` lists routes by address, because that is how they are kept; `remove` of a prefix without
  route fails, where Click does nothing
",
    codes: PortCodes::SORTER,
    state: StateScope::PerWorker,
    make,
};

struct Lookup {
    routes: Routes<Hop>,
    outputs: usize,
}

fn make(cx: &mut Configure<'_>) -> Option<BoxElement> {
    let (outputs, span) = (cx.shape.outputs, cx.span);
    let mut routes = cx.accept(span, Routes::new())?;
    let mut args = cx.args();
    let mut again = vec![];
    for text in args.rest() {
        let Some((network, hop)) = args.read(&text, line::route(outputs)) else { continue };
        if routes.exact(network.0, network.1).is_some() {
            again.push(text.span);
        }
        if let Err(error) = routes.set(network.0, network.1, hop) {
            args.error(text.span, error.to_string());
        }
    }
    let fine = args.finish();
    for place in again {
        cx.diags.warning(place, "a route for this prefix stands earlier: this one replaces it");
    }
    fine.then(|| BoxElement::transparent(Lookup { routes, outputs }))
}

fn show((address, len): Network) -> String {
    format!("{}/{len}", Ipv6Addr::from(address))
}

fn show_route(address: u128, len: u8, Hop { gateway, port }: Hop) -> String {
    format!("{}\t{gateway}\t{port}", show((address, len)))
}

impl Lookup {
    fn add(&mut self, text: &str) -> Result<(), String> {
        let (network, hop) = written(text, line::route(self.outputs))?;
        self.routes.set(network.0, network.1, hop).map_err(|error| error.to_string())
    }

    fn remove(&mut self, text: &str) -> Result<(), String> {
        let network = written(text, line::network)?;
        match self.routes.clear(network.0, network.1) {
            Some(_) => Ok(()),
            None => Err(format!("there is no route for {}", show(network))),
        }
    }
}

impl Transparent for Lookup {
    fn build(&self, f: &mut Builder) {
        f.name("LookupIP6Route");
        let table = f.table("routes", 2, RECORD_BYTES);
        let (no_route, no_output) = (f.drop_block("no-route"), f.drop_block("no-such-output"));
        let key = [f.eval(anno(address::HIGH)), f.eval(anno(address::LOW))];
        let hop = f.lookup(table, &key, no_route);
        let (high, low) = (f.eval(record(hop, HIGH, 8)), f.eval(record(hop, LOW, 8)));
        let gateway = f.eval(high | low);
        let high = select(gateway, high, anno(address::HIGH));
        address::store(f, high, select(gateway, low, anno(address::LOW)));
        f.emit_to(record(hop, PORT, 4), no_output);
    }

    fn table(&mut self, index: usize) -> Option<&mut dyn Table> {
        (index == 0).then_some(&mut self.routes as &mut dyn Table)
    }
}

impl Element for Lookup {
    element::facts!(handlers: HANDLERS);
}

impl Lookup {
    fn control(&mut self, value: &str, _cells: &mut [u64]) -> Result<(), String> {
        let is_command = |line: &&str| !line.is_empty() && !line.starts_with('#');
        value.lines().map(str::trim).filter(is_command).try_for_each(|line| {
            match line.split_once(char::is_whitespace) {
                Some(("add", route)) => self.add(route),
                Some(("remove", prefix)) => self.remove(prefix),
                _ => Err("bad command, should be `add` or `remove`".to_string()),
            }
        })
    }
}

const HANDLERS: &[Row<Lookup>] = &[
    Row::read("table", |lookup, _| {
        let routes = lookup.routes.dump(show_route);
        Some(if routes.is_empty() { routes } else { format!("# Active routes\n{routes}") })
    }),
    Row::write("add", |lookup, route, _| lookup.add(route)),
    Row::write("remove", |lookup, prefix, _| lookup.remove(prefix)),
    Row::write("ctrl", Lookup::control),
];
