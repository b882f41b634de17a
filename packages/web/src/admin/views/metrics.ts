/** The figures of `/metrics` that the page shows. */

/** What is on a disk, by the label `part`. */
const parts: Readonly<Record<string, string>> = { data: 'the database', blobs: 'attachments' };

/**
 * Reads the free bytes of disks, by what is on them, from Prometheus's text format.
 *
 * @example
 * freeBytesOf('posthouse_disk_free_bytes{part="data"} 7\n'); // [['the database', 7]]
 */
export function freeBytesOf(text: string): readonly (readonly [string, number])[] {
  const free = [...text.matchAll(/^posthouse_disk_free_bytes\{part="(\w+)"\} (\d+)/gm)];
  return free.map(([, part = '', value]) => [parts[part] ?? part, Number(value)]);
}
