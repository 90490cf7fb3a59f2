//! One file per guarantee.
