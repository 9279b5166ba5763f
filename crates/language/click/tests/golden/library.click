require(library queues.click, package ethernet, compact_config);
require(library queues.click);
provide(nothing);
Idle -> Two -> Unqueue -> Bad -> Discard;
