// test check flatten format
// becomes
== mistakes
== graph
