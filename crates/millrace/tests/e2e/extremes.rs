//! Extreme numbers as arguments of every element class: whatever they are, `check` says what is wrong with
//! them.
//!
//! The binary under test checks its arithmetic, so that a number that wraps ends it. Keywords and forms of
//! arguments are taken from the classes' own pages, so that what is new is tried, too.

use crate::program::Folder;

/// Numbers at the ends of types, and around what is multiplied out of them (bits, nanoseconds, mebibytes).
const NUMBERS: [&str; 22] = [
    "0",
    "1",
    "-1",
    "255",
    "256",
    "65535",
    "65536",
    "2147483647",
    "2147483648",
    "-2147483648",
    "4294967295",
    "4294967296",
    "1844674407370955161",
    "9223372036854775807",
    "-9223372036854775808",
    "9223372036854775808",
    "18446744073709551615",
    "18446744073709551616",
    "340282366920938463463374607431768211456",
    "1e308",
    "0.0000000001",
    "0xffffffffffffffff",
];
/// What arguments are made of around a number.
const FORMS: [&str; 27] = [
    "N",
    "Ns",
    "Nms",
    "Nh",
    "NGbps",
    "NkB",
    "N/00",
    "12/0800%N",
    "N/N",
    "N-N",
    "1.2.3.4/N",
    "N.N.N.N",
    "1.2.3.4:N",
    "::/N",
    "N:N:N:N:N:N",
    "pattern 1.2.3.4 N-N - - 0 1",
    "1.2.3.4/N 1.2.3.5 N",
    "src port N-N",
    "ip[N:N] = N",
    "ip len >= N",
    "ip ttl N && ip proto N",
    "tcp port > N",
    "net 1.2.3.4/N",
    "N N N",
    "-N",
    "\\<00>N",
    "%N",
];

/// Words of a page that may be keywords.
fn keywords(page: &str) -> Vec<&str> {
    let is_keyword =
        |word: &&str| word.len() > 1 && word.bytes().all(|byte| byte.is_ascii_uppercase() || byte == b'_');
    let mut words: Vec<&str> = page
        .split(|letter: char| !letter.is_ascii_alphanumeric() && letter != '_')
        .filter(is_keyword)
        .collect();
    words.sort_unstable();
    words.dedup();
    words
}

/// The arguments that a class is tried with, from its page.
fn arguments(class: &str, page: &str, turn: usize) -> Vec<String> {
    let mut lists = vec![];
    for (at, number) in NUMBERS.iter().enumerate() {
        for (form_at, form) in FORMS.iter().enumerate() {
            // Each class has each form, with a part of the numbers; all together all of them.
            if (at + form_at + turn).is_multiple_of(4) {
                lists.push(form.replace('N', number));
            }
        }
        for count in 2..=6 {
            lists.push(vec![*number; count].join(", "));
        }
        for keyword in keywords(page) {
            lists.push(format!("{keyword} {number}"));
            lists.push(format!("1, {keyword} {number}"));
        }
    }
    // What the page shows, with each of its numbers exchanged.
    let shown = page.lines().filter_map(|line| line.split_once(&format!("{class}(")));
    let shown = shown.filter_map(|(_, rest)| rest.rsplit_once(')')).map(|(inside, _)| inside);
    for inside in shown.filter(|inside| !inside.contains("->") && !inside.contains("::")) {
        let bytes = inside.as_bytes();
        let mut at = 0;
        while at < bytes.len() {
            let end = (at..bytes.len()).find(|end| !bytes[*end].is_ascii_digit()).unwrap_or(bytes.len());
            if end > at {
                lists.extend(NUMBERS.map(|number| format!("{}{number}{}", &inside[..at], &inside[end..])));
            }
            at = end.max(at) + 1;
        }
    }
    lists
}

#[test]
fn no_number_is_too_large_for_an_element_to_refuse_it() {
    let folder = Folder::new();
    let list = folder.millrace(&["elements"]).sound().text();
    let classes: Vec<&str> = list
        .lines()
        .filter(|line| !line.starts_with(' '))
        .filter_map(|line| line.split_whitespace().next())
        .collect();
    assert!(classes.len() > 100 && classes.contains(&"Classifier"), "{list}");
    let mut tried = 0;
    for (turn, class) in classes.iter().enumerate() {
        let page = folder.millrace(&["elements", class]).sound().text();
        let lists = arguments(class, &page, turn);
        tried += lists.len();
        let click: String =
            lists.iter().map(|list| format!("Idle -> {class}({list}) -> Discard;\n")).collect();
        folder.write("extreme.click", &click);
        // As a configuration, and as an NF of a chain file. No command ends by a panic: `Finished` sees to
        // that.
        let alone = folder.millrace(&["check", "extreme.click", "--short"]);
        assert!(matches!(alone.code, Some(0..=2)), "{class}: {}", alone.stderr);
        if turn % 8 == 0 {
            folder.write("extreme.toml", "links = []\n[nf.a]\nconfig = \"extreme.click\"\n");
            let in_chain = folder.millrace(&["check", "extreme.toml", "--short"]);
            assert!(matches!(in_chain.code, Some(0..=2)), "{class}: {}", in_chain.stderr);
        }
    }
    assert!(tried > 20_000, "{tried}");
}
