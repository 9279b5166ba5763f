//! User ids of a container: those inside, and the machine's ids that they map to.

/// The distance from an NF's user id to the machine's id of its container's user 0.
const TO_ROOT: u32 = 1_000_000_000;

/// The user ids of an NF, each of them a group id, too. No other NF of this machine has them.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Ids {
    /// The user id of the NF.
    pub user: u32,
    /// The machine's id of its container's user 0, if the NF is another user there.
    root: u32,
}

impl Ids {
    /// The ids of an NF that runs as that user.
    pub fn new(user: u32) -> Ids {
        Ids { user, root: user + TO_ROOT }
    }

    /// The ids inside, each with the machine's id: that of the NF, and 0, which the runtime uses for the
    /// setup.
    pub fn mapped(self, inside: u32) -> Vec<(u32, u32)> {
        if inside == 0 { vec![(0, self.user)] } else { vec![(0, self.root), (inside, self.user)] }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_nf_has_its_own_user_whatever_it_is_inside() {
        let ids = Ids::new(1_000_000_007);
        assert_eq!(ids.mapped(0), [(0, 1_000_000_007)]);
        assert_eq!(ids.mapped(5), [(0, 2_000_000_007), (5, 1_000_000_007)]);
    }
}
