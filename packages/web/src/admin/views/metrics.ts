/** The figures of `/metrics` that the page shows. */

/** What is on a disk, by the label `part`. */
const parts: Readonly<Record<string, string>> = { data: 'the database', blobs: 'attachments' };

interface Figures {
  /** Bytes that are free, by what is on the disk. */
  readonly free: readonly (readonly [string, number])[];
  /** How often clients knew more than this relay after a restore. */
  readonly losses: number;
}

/**
 * Reads Prometheus's text format.
 *
 * @example
 * figuresOf('posthouse_disk_free_bytes{part="data"} 7\n').free; // [['the database', 7]]
 */
export function figuresOf(text: string): Figures {
  const free = [...text.matchAll(/^posthouse_disk_free_bytes\{part="(\w+)"\} (\d+)/gm)];
  const losses = [...text.matchAll(/^posthouse_restore_losses_total\S* (\d+)/gm)];
  return {
    free: free.map(([, part = '', value]) => [parts[part] ?? part, Number(value)]),
    losses: losses.reduce((sum, [, value]) => sum + Number(value), 0),
  };
}
