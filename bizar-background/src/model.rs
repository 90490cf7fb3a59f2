//! The name of a model as people and models write it.

use std::{fmt, str::FromStr};

use serde::{Deserialize, Serialize};

/// A model and its provider, written `provider/model`.
///
/// The text is cut at its first `/`; the model keeps all the rest, because many
/// providers have ids with slashes, colons or at signs in them.
///
/// ```
/// use bizar_background::Model;
/// let model: Model = "openrouter/anthropic/claude-x".parse()?;
/// assert_eq!((model.provider.as_str(), model.id.as_str()), ("openrouter", "anthropic/claude-x"));
/// # Ok::<(), bizar_background::InvalidModel>(())
/// ```
#[derive(Clone, Debug, Deserialize, Eq, Hash, PartialEq, Serialize)]
pub struct Model {
    /// The provider: not empty, no white space.
    pub provider: String,
    /// What the provider calls the model: not empty.
    pub id: String,
}

impl FromStr for Model {
    type Err = InvalidModel;

    fn from_str(text: &str) -> Result<Self, InvalidModel> {
        let (provider, id) = text.split_once('/').ok_or(InvalidModel)?;
        let blank = provider.contains(char::is_whitespace) || text.trim() != text;
        if provider.is_empty() || id.is_empty() || blank || text.contains(char::is_control) {
            return Err(InvalidModel);
        }
        Ok(Self {
            provider: provider.into(),
            id: id.into(),
        })
    }
}

impl fmt::Display for Model {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.provider, self.id)
    }
}

/// The text does not name a provider and a model.
#[derive(Clone, Copy, Debug, Eq, PartialEq, thiserror::Error)]
#[error("model must be written provider/model, such as openrouter/anthropic/claude-x")]
pub struct InvalidModel;
