//! All that the author of an Atomic extension depends on.

#[doc(hidden)]
#[allow(missing_docs)]
pub mod abi;
mod error;
mod extension;
pub mod manifest;

pub use error::{Error, Result};
pub use extension::Extension;

/// For `export_extension!` only.
#[doc(hidden)]
pub mod __private {
    pub use crate::abi::{
        abi_stable::library::RootModuleResult,
        entry::{activate, root},
        frozen::{Header, HostApiRef, Instance, header},
    };
    pub use crate::extension::run;
    pub use crate::manifest::{Parts, encode, encoded_len};
    /// What `activate` answers across the boundary.
    pub type ActivateResult = abi_stable::std_types::RResult<Instance, abi_stable::std_types::RVec<u8>>;
}

/// What every extension imports.
pub mod prelude {
    pub use crate::{Error, Extension, Result, export_extension};
}
