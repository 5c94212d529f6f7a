// SPDX-License-Identifier: MIT OR Apache-2.0
//! Implementation of [`crate::records`]: one declaration, three outputs.

/// One column of a record: its name, C type, byte offset and meaning.
#[derive(Clone, Copy, Debug)]
pub struct Column {
    pub name: &'static str,
    pub c_type: &'static str,
    pub offset: usize,
    pub doc: &'static str,
}

/// One kind of record.
#[derive(Clone, Copy, Debug)]
pub struct Table {
    pub name: &'static str,
    pub kind: u8,
    /// Bytes of the fixed part; a tail may follow.
    pub size: usize,
    pub columns: &'static [Column],
    pub doc: &'static str,
}

/// A type with a counterpart in the kernel programs.
pub trait CType {
    /// Spelling in C. `%` stands for the name if the type encloses it (arrays).
    const C: &'static str;
}

impl CType for u8 {
    const C: &'static str = "__u8";
}
impl CType for u16 {
    const C: &'static str = "__u16";
}
impl CType for u32 {
    const C: &'static str = "__u32";
}
impl CType for i32 {
    const C: &'static str = "__s32";
}
impl CType for u64 {
    const C: &'static str = "__u64";
}
impl CType for [u8; 16] {
    const C: &'static str = "char %[16]";
}
impl CType for [u64; 3] {
    const C: &'static str = "__u64 %[3]";
}

/// Returns a C member declaration, `__u32 name` or `char name[16]`.
pub(crate) fn c_member(c_type: &str, name: &str) -> String {
    if c_type.contains('%') { c_type.replace('%', name) } else { format!("{c_type} {name}") }
}

/// Declares records: `/// doc` `name: Type = kind { /// doc  field: Type, ... }`.
macro_rules! records {
    ($($(#[doc = $doc:literal])* $name:ident: $type:ident = $kind:literal {
        $($(#[doc = $fdoc:literal])* $field:ident: $ftype:ty,)*
    })*) => {
        /// Kind of a record, the value of `head.kind`.
        #[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
        #[repr(u8)]
        pub enum RecordKind { $($(#[doc = $doc])* $type = $kind,)* }

        impl RecordKind {
            /// Returns the kind with this number, if there is one.
            #[inline]
            pub fn from_number(number: u8) -> Option<RecordKind> {
                match number { $($kind => Some(RecordKind::$type),)* _ => None }
            }

            /// Returns the bytes of the fixed part of a record of this kind.
            #[inline]
            pub fn size(self) -> usize {
                match self { $(RecordKind::$type => $type::SIZE,)* }
            }
        }

        $(
            $(#[doc = $doc])*
            #[derive(Clone, Copy, Debug, zerocopy::FromBytes, zerocopy::IntoBytes)]
            #[derive(zerocopy::Immutable, zerocopy::KnownLayout)]
            #[repr(C)]
            pub struct $type {
                pub head: Head,
                $($(#[doc = $fdoc])* pub $field: $ftype,)*
            }

            impl $type {
                /// Value of `head.kind`.
                pub const KIND: RecordKind = RecordKind::$type;
                /// Bytes of the fixed part.
                pub const SIZE: usize = size_of::<$type>();

                /// Reads the fixed part from the bytes of a record; returns `None` if they are too
                /// short.
                #[inline]
                pub fn read(bytes: &[u8]) -> Option<$type> {
                    let (record, _) = zerocopy::FromBytes::read_from_prefix(bytes).ok()?;
                    Some(record)
                }
            }
        )*

        /// All records, for documentation and for tools that treat them as tables.
        pub const TABLES: &[Table] = &[$(Table {
            name: stringify!($name),
            kind: $kind,
            size: size_of::<$type>(),
            doc: concat!($($doc,)*),
            columns: &[$(Column {
                name: stringify!($field),
                c_type: <$ftype as CType>::C,
                offset: std::mem::offset_of!($type, $field),
                doc: concat!($($fdoc,)*),
            },)*],
        },)*];
    };
}
pub(crate) use records;
