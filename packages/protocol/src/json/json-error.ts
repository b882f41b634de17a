/**
 * Why a text was refused.
 * - `syntax`: not one RFC 8259 value in valid UTF-8;
 * - `rule`: valid JSON that breaks a narrower rule of chapter 01, section 2.1.
 *
 * A text can have both faults; the first one found is reported. Use `diagnoseEnvelope` if the
 * answer depends on all faults.
 */
export type JsonFault = 'syntax' | 'rule';

/** A text that the strict parser refuses: its position (`offset`, `path`) and the reason. */
export class JsonError extends Error {
  override readonly name = 'JsonError';
  readonly fault: JsonFault;
  /** UTF-16 offset in the text. */
  readonly offset: number;
  /** Names and indexes from the root to the value at fault. */
  readonly path: readonly (string | number)[];

  constructor(fault: JsonFault, reason: string, offset: number, path: (string | number)[] = []) {
    super(`${reason} at offset ${offset}`);
    this.fault = fault;
    this.offset = offset;
    this.path = path;
  }
}
