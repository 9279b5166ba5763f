//! Types that are written as text, in TOML and JSON too.

/// Makes the text form of a type its serde form.
macro_rules! text_serde {
    ($type:ty) => {
        impl TryFrom<String> for $type {
            type Error = $crate::TrafficError;

            fn try_from(text: String) -> Result<Self, Self::Error> {
                text.parse()
            }
        }

        impl From<$type> for String {
            fn from(value: $type) -> Self {
                value.to_string()
            }
        }
    };
}
pub(crate) use text_serde;
