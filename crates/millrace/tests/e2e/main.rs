//! Tests of the binary as its users meet it: commands, files and exit statuses, no crate of the project.
//!
//! What it writes is read back by others: `pcap-file` and etherparse, and tshark where it is installed.
//! Books are added up here again from `run --json`, element by element.

mod accounts;
mod acl;
mod asked;
mod bad_input;
mod bench;
mod both_ways;
mod both_ways_in_processes;
mod bounds;
mod cable;
mod captures;
mod chain;
mod check;
mod click_classes;
mod command_line;
mod compressed;
mod console;
mod daemon;
mod devices;
mod experiments;
mod explain;
mod extremes;
mod files;
mod foreign_loader;
mod fused;
mod generate;
mod guide;
mod handlers;
mod json;
mod library;
mod namespaces;
mod napt;
mod openflow;
mod order;
mod packets;
mod plan;
mod process;
mod program;
mod prove;
mod queues;
mod real;
mod router;
mod running;
mod scripts;
mod steering;
mod synthesis;
mod virtual_time;
