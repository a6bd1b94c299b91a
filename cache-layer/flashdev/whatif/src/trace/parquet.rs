//! A trace as a Parquet file, for programs that analyse data: written, never read.
//!
//! One row a request: `at_ns` (from the start of the trace; 0 without times), `write`, `offset` and
//! `bytes`, compressed by Snappy.

use std::io::{self, Write};
use std::sync::Arc;

use parquet::basic::Compression;
use parquet::data_type::{BoolType, DataType, Int64Type};
use parquet::errors::ParquetError;
use parquet::file::properties::WriterProperties;
use parquet::file::writer::{SerializedFileWriter, SerializedRowGroupWriter};
use parquet::schema::parser::parse_message_type;

use super::Request;

const SCHEMA: &str = "message trace {
    required int64 at_ns;
    required boolean write;
    required int64 offset;
    required int64 bytes;
}";

/// Requests in a row group: some 10 MB in memory.
const ROWS: usize = 1 << 18;

/// Writes a trace as Parquet.
pub struct Writer<W: Write + Send> {
    file: SerializedFileWriter<W>,
    rows: Vec<Request>,
}

impl<W: Write + Send> Writer<W> {
    /// # Errors
    /// It cannot be written.
    pub fn new(out: W) -> io::Result<Writer<W>> {
        let schema = Arc::new(parse_message_type(SCHEMA).map_err(io_error)?);
        let properties = WriterProperties::builder().set_compression(Compression::SNAPPY);
        let properties = Arc::new(properties.build());
        Ok(Writer {
            file: SerializedFileWriter::new(out, schema, properties).map_err(io_error)?,
            rows: Vec::with_capacity(ROWS),
        })
    }

    /// Adds a request.
    ///
    /// # Errors
    /// It cannot be written.
    pub fn add(&mut self, request: Request) -> io::Result<()> {
        self.rows.push(request);
        match self.rows.len() < ROWS {
            true => Ok(()),
            false => self.write_group().map_err(io_error),
        }
    }

    /// Completes the file.
    ///
    /// # Errors
    /// It cannot be written.
    pub fn finish(mut self) -> io::Result<()> {
        self.write_group()
            .and_then(|()| self.file.close())
            .map(drop)
            .map_err(io_error)
    }

    fn write_group(&mut self) -> Result<(), ParquetError> {
        let rows = std::mem::take(&mut self.rows);
        let numbers = |of: fn(&Request) -> u64| -> Vec<i64> {
            rows.iter().map(|row| of(row) as i64).collect()
        };
        let writes: Vec<bool> = rows.iter().map(|row| row.write).collect();
        let mut group = self.file.next_row_group()?;
        column::<Int64Type, W>(&mut group, &numbers(|row| row.at))?;
        column::<BoolType, W>(&mut group, &writes)?;
        column::<Int64Type, W>(&mut group, &numbers(|row| row.offset))?;
        column::<Int64Type, W>(&mut group, &numbers(|row| row.bytes))?;
        group.close().map(drop)
    }
}

/// Writes the next column of a group.
fn column<T: DataType, W: Write + Send>(
    group: &mut SerializedRowGroupWriter<'_, W>,
    values: &[T::T],
) -> Result<(), ParquetError> {
    let Some(mut column) = group.next_column()? else {
        return Err(ParquetError::General(
            "more columns than the schema".to_owned(),
        ));
    };
    column.typed::<T>().write_batch(values, None, None)?;
    column.close()
}

fn io_error(error: ParquetError) -> io::Error {
    io::Error::other(error)
}

#[cfg(test)]
mod tests {
    use super::*;
    use parquet::file::reader::{FileReader, SerializedFileReader};
    use parquet::record::RowAccessor;
    use proptest::prelude::*;

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(50))]

        #[test]
        fn what_is_written_can_be_read(
            rows in prop::collection::vec((any::<u32>(), any::<bool>(), 0..1u64 << 60, 0..1u64 << 40), 0..200),
        ) {
            let request = |(at, write, offset, bytes): (u32, bool, u64, u64)| Request {
                at: at.into(), write, offset, bytes,
            };
            let requests: Vec<Request> = rows.into_iter().map(request).collect();
            let file = tempfile::NamedTempFile::new().unwrap();
            let mut writer = Writer::new(file.reopen().unwrap()).unwrap();
            for one in &requests {
                writer.add(*one).unwrap();
            }
            writer.finish().unwrap();
            let reader = SerializedFileReader::new(file.reopen().unwrap()).unwrap();
            let read: Vec<Request> = reader.get_row_iter(None).unwrap().map(|row| {
                let row = row.unwrap();
                let number = |column| row.get_long(column).unwrap() as u64;
                Request {
                    at: number(0),
                    write: row.get_bool(1).unwrap(),
                    offset: number(2),
                    bytes: number(3),
                }
            }).collect();
            prop_assert_eq!(read, requests);
        }
    }

    #[test]
    fn a_long_trace_has_several_groups() {
        let file = tempfile::NamedTempFile::new().unwrap();
        let mut writer = Writer::new(file.reopen().unwrap()).unwrap();
        let rows = ROWS as u64 + 1;
        for at in 0..rows {
            writer
                .add(Request {
                    at,
                    write: false,
                    offset: at << 12,
                    bytes: 4096,
                })
                .unwrap();
        }
        writer.finish().unwrap();
        let reader = SerializedFileReader::new(file.reopen().unwrap()).unwrap();
        assert_eq!(reader.metadata().num_row_groups(), 2);
        assert_eq!(reader.metadata().file_metadata().num_rows(), rows as i64);
    }
}
