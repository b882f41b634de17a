/** The code of an invite: how it is made, read and stored. */
import type { Random } from '@posthouse/protocol/crypto';
import { base32crockford } from '@scure/base';
import { digest } from '../digest.ts';

/** Random bytes of a code. */
const codeBytes = 16;
/** Longer texts are no codes; a code has 26 characters, and people add some to group them. */
const longestText = 64;
/** Characters of a group. */
const group = 7;
/** Random bytes of an ID. */
const idBytes = 5;

/** A new invite: its code is shown once. */
export interface InviteCode {
  /** By which commands name the invite; it says nothing about the code. */
  readonly id: string;
  /** Four groups of letters and digits that are easy to tell apart. */
  readonly code: string;
  /** What is stored of it. */
  readonly digest: string;
}

/** Makes a code of 16 random bytes. */
export function newInviteCode(random: Random): InviteCode {
  const bytes = random(codeBytes);
  const groups = base32crockford.encode(bytes).match(new RegExp(`.{1,${group}}`, 'g'));
  return {
    id: base32crockford.encode(random(idBytes)).toLowerCase(),
    code: (groups ?? []).join('-'),
    digest: digestOf(bytes),
  };
}

/**
 * Returns what is stored of a code, as a person typed it: letters of either case, groups divided in
 * any way, O for 0 and I or L for 1. `undefined` if it is no code.
 */
export function inviteDigest(text: unknown): string | undefined {
  if (typeof text !== 'string' || text.length > longestText) return undefined;
  try {
    const bytes = base32crockford.decode(text.replace(/[\s-]/g, ''));
    return bytes.length === codeBytes ? digestOf(bytes) : undefined;
  } catch {
    return undefined;
  }
}

function digestOf(bytes: Uint8Array): string {
  return digest(Buffer.from(bytes).toString('hex'));
}
