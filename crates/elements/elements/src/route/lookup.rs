//! The element behind all classes of IPv4 route lookup.

use super::line::{self, Command, Hop, Line, Shown};
use super::table::{GATEWAY, PORT, RECORD_BYTES, RouteError, Routes};
use click::config::{NoNames, parse};
use diag::{Span, Spanned};
use element::{BoxElement, Configure, Element, Handlers, Row, Transparent};
use ir::expr::{anno, record, select};
use ir::{Builder, Table};
use packet::anno;
use std::net::Ipv4Addr;

/// The properties of a class.
pub struct Kind {
    /// The class.
    pub name: &'static str,
    /// Its handlers; a fixed table has no `add`.
    pub handlers: &'static [Row<Lookup>],
    /// Whether Click calls the class deprecated.
    pub deprecated: bool,
}

/// A file of a million routes may be in another format: errors are not reported for all of them.
const MOST_MISTAKES: usize = 100;

/// The element.
pub struct Lookup {
    kind: &'static Kind,
    routes: Routes<Hop>,
    outputs: usize,
    /// Where the element is declared, for texts that handlers write.
    span: Span,
}

/// Makes the element of a class.
pub fn make(cx: &mut Configure<'_>, kind: &'static Kind) -> Option<BoxElement> {
    let (outputs, span) = (cx.shape.outputs, cx.span);
    let mut routes = cx.accept(span, Routes::new())?;
    let mut args = cx.args();
    let mut again = vec![];
    let mut mistakes = 0;
    for text in args.rest() {
        let Some(route) = args.read(&text, line::route(outputs, false)) else {
            mistakes += 1;
            if mistakes == MOST_MISTAKES {
                args.error(text.span, "too many mistakes: the routes behind this one were not read");
                break;
            }
            continue;
        };
        match routes.add(&route, false) {
            Ok(_) => {}
            Err(RouteError::Exists(first)) => again.push((text.span, first)),
            Err(error) => {
                args.error(text.span, error.to_string());
            }
        }
    }
    let fine = args.finish();
    if kind.deprecated {
        let message = format!("{} is deprecated", kind.name);
        cx.diags.warning(span, message).help("use LinearIPLookup or RadixIPLookup instead");
    }
    if let Some((place, first)) = again.first() {
        let message = match again.len() {
            1 => "a route for this prefix stands earlier and counts".to_string(),
            count => format!("{count} routes have prefixes that stand earlier; the earlier ones count"),
        };
        cx.diags.warning(*place, message).help(format!("the earlier route is `{first}`"));
    }
    fine.then(|| BoxElement::transparent(Lookup { kind, routes, outputs, span }))
}

impl Lookup {
    fn read_line(&self, text: &Spanned, command: Command) -> Result<Line, String> {
        let read = line::route(self.outputs, command == Command::Remove);
        read(text, &NoNames).map_err(|mistake| match mistake.help {
            Some(help) => format!("{}; {help}", mistake.message),
            None => mistake.message,
        })
    }

    /// Runs a command; returns its line and the route that it replaced, to undo it.
    fn command(&mut self, command: Command, text: &Spanned) -> Result<(Line, Option<Hop>), String> {
        let line = self.read_line(text, command)?;
        let old = match command {
            Command::Add => self.routes.add(&line, false),
            Command::Set => self.routes.add(&line, true),
            Command::Remove => self.routes.remove(&line).map(Some),
        };
        Ok((line, old.map_err(|error| error.to_string())?))
    }

    fn change(&mut self, command: Command, text: &str) -> Result<(), String> {
        self.command(command, &Spanned::derived(text.trim(), self.span)).map(drop)
    }

    /// Runs all commands of a text, one a line, or none of them.
    fn control(&mut self, text: &str) -> Result<(), String> {
        let mut done = vec![];
        for (number, text) in text.lines().enumerate() {
            let result = match line::command(&Spanned::derived(text, self.span)) {
                None => continue,
                Some(Ok((command, rest))) => self.command(command, &rest),
                Some(Err(message)) => Err(message),
            };
            match result {
                Ok(change) => done.push(change),
                Err(message) => {
                    self.undo(done);
                    return Err(format!("line {}: {message}", number + 1));
                }
            }
        }
        Ok(())
    }

    fn undo(&mut self, done: Vec<(Line, Option<Hop>)>) {
        for (line, old) in done.into_iter().rev() {
            let undone = match old {
                None => self.routes.remove(&Line { port: None, ..line }).map(Some),
                Some(Hop { gateway, port }) => {
                    self.routes.add(&Line { gateway, port: Some(port), ..line }, true)
                }
            };
            debug_assert!(undone.is_ok(), "{undone:?}");
        }
    }

    fn find(&self, address: &str) -> Option<String> {
        let text = Spanned::derived(address.trim(), self.span);
        let address = parse::ip4(&text, &NoNames).ok()?;
        Some(match self.routes.find(u32::from(address)) {
            None => "-1".to_string(),
            Some(Hop { gateway: 0, port }) => port.to_string(),
            Some(Hop { gateway, port }) => format!("{port} {}", Ipv4Addr::from(gateway)),
        })
    }
}

impl Transparent for Lookup {
    fn build(&self, f: &mut Builder) {
        f.name(self.kind.name);
        let table = f.prefix_table("routes", RECORD_BYTES);
        let (no_route, no_output) = (f.drop_block("no-route"), f.drop_block("no-such-output"));
        let address = f.eval(anno(anno::DST_IP));
        let hop = f.lookup(table, &[address], no_route);
        let gateway = f.eval(record(hop, GATEWAY, 4));
        // The annotation is read again, which is cheaper than keeping it over the lookup. Traffic mixes
        // routes with and without gateway, which a branch would mispredict.
        f.store_anno(anno::DST_IP, select(gateway, gateway, anno(anno::DST_IP)));
        f.emit_to(record(hop, PORT, 4), no_output);
    }

    fn table(&mut self, index: usize) -> Option<&mut dyn Table> {
        (index == 0).then_some(&mut self.routes as &mut dyn Table)
    }
}

impl Element for Lookup {
    fn handlers(&mut self) -> Handlers<'_> {
        Handlers::of(self, self.kind.handlers)
    }
}

/// The handlers of a table that can be flushed.
pub const FLUSHING: &[Row<Lookup>] = &[
    Row::read("table", |lookup, _| {
        Some(lookup.routes.dump(|prefix, len, hop| Shown(prefix, len, hop).columns()))
    }),
    Row::ask("lookup", Lookup::find),
    Row::write("add", |lookup, route, _| lookup.change(Command::Add, route)),
    Row::write("set", |lookup, route, _| lookup.change(Command::Set, route)),
    Row::write("remove", |lookup, route, _| lookup.change(Command::Remove, route)),
    Row::write("ctrl", |lookup, commands, _| lookup.control(commands)),
    Row::write("flush", |lookup, _, _| lookup.routes.flush().map_err(|error| error.to_string())),
];
/// The handlers of a table that can be changed: all but the last.
pub const CHANGING: &[Row<Lookup>] = FLUSHING.split_at(6).0;
/// The handlers of a table that can only be read.
pub const FIXED: &[Row<Lookup>] = FLUSHING.split_at(2).0;
