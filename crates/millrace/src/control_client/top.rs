//! `millrace top`: the daemon's chain on a terminal, live.

use super::stats;
use crate::accounting;
use crate::accounting::table::{Look, named};
use crate::at::At;
use crate::exit::ExitStatus;
use crate::text::count;
use crate::times;
use clap::Args;
use control::api::{InstanceState, NfStatus, Stats};
use control::{Client, ClientError};
use ratatui::Frame;
use ratatui::crossterm::event::{self, Event, KeyCode, KeyModifiers};
use ratatui::layout::{Constraint, Layout};
use ratatui::style::{Color, Modifier, Style};
use ratatui::text::Line;
use ratatui::widgets::{Block, Cell, Paragraph, Row, Table};
use std::time::{Duration, Instant};

/// Shows the daemon's chain live: rates, NFs, drops. `q` ends it, arrows scroll, `space` pauses. With --json
/// it prints what `stats --watch --json` does, and needs no terminal.
#[derive(Debug, Args)]
pub struct TopArgs {
    /// Time between two looks; a number alone counts seconds
    #[arg(long, short, alias = "delay", short_alias = 'd', value_name = "TIME", default_value = "1s", value_parser = times::time)]
    interval: Duration,

    #[command(flatten)]
    at: At,
}

/// The state of the screen.
struct Screen {
    chain: String,
    now: Option<Stats>,
    last: Option<Stats>,
    problem: Option<String>,
    paused: bool,
    scrolled: usize,
}

/// Runs the command.
///
/// # Errors
/// When there is no terminal; as JSON, when no daemon answers, or it has no chain.
pub fn run(args: &TopArgs) -> anyhow::Result<ExitStatus> {
    let interval = args.interval.clamp(Duration::from_millis(100), Duration::from_secs(3600));
    let client = args.at.client()?;
    if crate::console::is_json() {
        return stats::watch_as_json(&client, interval);
    }
    // Without a daemon, the error is printed before the terminal is taken over.
    client.status()?;
    let mut screen =
        Screen { chain: String::new(), now: None, last: None, problem: None, paused: false, scrolled: 0 };
    let mut terminal = ratatui::try_init()?;
    let result = (|| -> anyhow::Result<()> {
        let mut next = Instant::now();
        loop {
            if Instant::now() >= next {
                next = Instant::now() + interval;
                screen.look(&client);
            }
            terminal.draw(|frame| screen.draw(frame))?;
            if event::poll(next.saturating_duration_since(Instant::now()))?
                && let Event::Key(key) = event::read()?
            {
                let ends = key.code == KeyCode::Char('c') && key.modifiers.contains(KeyModifiers::CONTROL);
                match key.code {
                    KeyCode::Char('q') | KeyCode::Esc => return Ok(()),
                    _ if ends => return Ok(()),
                    KeyCode::Char(' ') => screen.paused = !screen.paused,
                    KeyCode::Down | KeyCode::Char('j') => screen.scrolled += 1,
                    KeyCode::Up | KeyCode::Char('k') => screen.scrolled = screen.scrolled.saturating_sub(1),
                    _ => {}
                }
            }
        }
    })();
    ratatui::restore();
    result.map(|()| ExitStatus::Good)
}

impl Screen {
    /// Gets the counters from the daemon, unless paused.
    fn look(&mut self, client: &Client) {
        if self.paused {
            return;
        }
        let asked = client.status().and_then(|status| {
            let Some(chain) = status.chain else { return Ok((String::from("no chain"), None)) };
            let state = if chain.running { "" } else { " (ended)" };
            Ok((format!("{}{state}", chain.path.display()), Some(client.stats()?)))
        });
        match asked {
            Ok((chain, stats)) => {
                self.chain = chain;
                self.last = std::mem::replace(&mut self.now, stats);
                self.problem = None;
            }
            Err(error @ (ClientError::NoDaemon { .. } | ClientError::HungUp(_))) => {
                (self.now, self.last) = (None, None);
                self.problem = Some(error.to_string());
            }
            Err(error) => self.problem = Some(error.to_string()),
        }
    }

    fn draw(&mut self, frame: &mut Frame<'_>) {
        let nfs = self.now.as_ref().map_or(0, |stats| stats.nfs.len().max(1));
        let areas = Layout::vertical([
            Constraint::Length(5),
            Constraint::Length(nfs as u16 + 3),
            Constraint::Min(3),
            Constraint::Length(1),
        ])
        .split(frame.area());
        let [head, nf_area, element_area, foot] = [areas[0], areas[1], areas[2], areas[3]];
        frame.render_widget(self.head(), head);
        if let Some(stats) = &self.now {
            frame.render_widget(nf_table(stats, self.last.as_ref()), nf_area);
            let rows = stats.elements.len();
            self.scrolled = self.scrolled.min(rows.saturating_sub(1));
            frame.render_widget(element_table(stats, self.last.as_ref(), self.scrolled), element_area);
        }
        let keys = if self.paused {
            "q quit   space go on   arrows scroll"
        } else {
            "q quit   space pause   arrows scroll"
        };
        frame.render_widget(Paragraph::new(keys).style(Style::new().fg(Color::DarkGray)), foot);
    }

    fn head(&self) -> Paragraph<'_> {
        let mut lines = vec![];
        if let Some(stats) = &self.now {
            lines.push(Line::from(accounting::sum(stats, Look::default()).trim_end().to_string()));
            let rates = self.last.as_ref().and_then(|last| stats::rates(stats, last));
            lines.push(Line::from(rates.unwrap_or_default().trim_end().to_string()));
            lines.extend(stats.warnings.last().map(|finding| Line::from(format!("warning: {finding}"))));
        }
        if let Some(problem) = &self.problem {
            lines.push(Line::from(problem.clone()).style(Style::new().fg(Color::Red)));
        }
        Paragraph::new(lines).block(Block::bordered().title(format!(" millrace: {} ", self.chain)))
    }
}

/// Packets per second since the last refresh, as text; `-` where it is not known.
fn rate(now: u64, before: Option<u64>, seconds: f64) -> String {
    match before {
        Some(before) if seconds > 0.0 => count((now.saturating_sub(before) as f64 / seconds).round() as u64),
        _ => "-".into(),
    }
}

/// The cells of drops and their reasons: red if there are any.
fn losses(dropped: u64, why: String) -> [Cell<'static>; 2] {
    let style = if dropped > 0 { Style::new().fg(Color::Red) } else { Style::new() };
    [count(dropped), why].map(|text| Cell::from(text).style(style))
}

fn seconds(now: &Stats, last: Option<&Stats>) -> f64 {
    last.map_or(0.0, |last| now.up_s - last.up_s)
}

/// A table with a frame, whose last column takes the remaining width.
fn table<'a, const COLUMNS: usize, const WIDTHS: usize>(
    title: &'a str,
    header: [&'a str; COLUMNS],
    widths: [u16; WIDTHS],
    rows: impl Iterator<Item = Row<'a>>,
) -> Table<'a> {
    let widths = widths.into_iter().map(Constraint::Length).chain([Constraint::Min(10)]);
    Table::new(rows, widths)
        .header(Row::new(header).style(Style::new().add_modifier(Modifier::BOLD)))
        .block(Block::bordered().title(title))
}

fn nf_table<'a>(stats: &'a Stats, last: Option<&Stats>) -> Table<'a> {
    let row = |nf: &'a NfStatus| {
        let before = last.and_then(|last| last.nfs.iter().find(|before| before.name == nf.name));
        let up = nf.instances.iter().filter(|instance| instance.state == InstanceState::Up).count();
        let state = match nf.instances.as_slice() {
            [only] => only.state.to_string(),
            all => format!("{up} of {} up", all.len()),
        };
        let style = if up == nf.instances.len() { Style::new() } else { Style::new().fg(Color::Yellow) };
        let restarts: u64 = nf.instances.iter().map(|instance| instance.restarts).sum();
        let dropped: u64 = nf.dropped.iter().map(|(_, count)| count).sum();
        let seconds = seconds(stats, last);
        Row::new(
            [
                nf.name.clone(),
                nf.kind.clone(),
                state,
                count(restarts),
                rate(nf.input, before.map(|before| before.input), seconds),
                rate(nf.output, before.map(|before| before.output), seconds),
                count(nf.held),
            ]
            .map(Cell::from)
            .into_iter()
            .chain(losses(dropped, nf.why())),
        )
        .style(style)
    };
    let header = ["nf", "kind", "state", "restarts", "in/s", "out/s", "held", "dropped", "why"];
    table(" NFs in processes ", header, [16, 12, 10, 9, 12, 12, 8, 12], stats.nfs.iter().map(row))
}

fn element_table<'a>(stats: &'a Stats, last: Option<&Stats>, scrolled: usize) -> Table<'a> {
    let rows = stats.elements.iter().enumerate().skip(scrolled).map(|(at, element)| {
        let before = last.and_then(|last| last.elements.get(at)).filter(|before| before.name == element.name);
        let all = |element: &control::api::Element| element.input + element.received + element.made;
        let dropped: u64 = element.dropped.iter().map(|(_, count)| count).sum();
        Row::new(
            [
                element.name.clone(),
                element.class.clone(),
                rate(all(element), before.map(all), seconds(stats, last)),
                count(all(element)),
            ]
            .map(Cell::from)
            .into_iter()
            .chain(losses(dropped, named(&element.dropped))),
        )
    });
    let header = ["element", "class", "packets/s", "packets", "dropped", "why"];
    table(" elements ", header, [28, 18, 12, 16, 14], rows)
}
