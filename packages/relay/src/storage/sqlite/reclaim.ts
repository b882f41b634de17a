/** Gives pages that the database does not use back to the disk, a few at a time. */
import type { Reader, Row, SyncWriter } from '../types.ts';

/** Pages of one step: about a millisecond, since pages at the end of the file are moved. */
const step = 32;
/** Unused pages that stay for the next writes: 4 MiB, or this part of a larger file. */
const keptPages = 1_024;
const keptPart = 8;
/** Of `PRAGMA auto_vacuum`: pages are given back when asked for. */
const incremental = 2;

const spaceSql = `SELECT page_size AS "pageSize", page_count AS pages, freelist_count AS unused,
    auto_vacuum AS mode
  FROM pragma_page_size, pragma_page_count, pragma_freelist_count, pragma_auto_vacuum`;

interface Space extends Row {
  pageSize: number;
  pages: number;
  unused: number;
  mode: number;
}

/** Reads the pages of the database: all, and those that hold nothing. */
export async function readSpace(tx: Reader): Promise<Space> {
  return (await tx.get<Space>(spaceSql)) as Space;
}

/** Whether so many pages hold nothing that they are not soon used again, and can be given back. */
export function isWorthReclaiming({ pages, unused, mode }: Space): boolean {
  return mode === incremental && unused > Math.max(keptPages, pages / keptPart);
}

/** Gives back the pages of one step. The statement returns a row for each: all must be read. */
export function reclaimStep(tx: SyncWriter): void {
  tx.all(`PRAGMA incremental_vacuum(${step})`);
}
