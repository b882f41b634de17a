import type { Caller } from '../accounts/index.ts';
import type { PostKey } from './channel-store.ts';

/** A post that was verified, to be accepted as long as its account may write. */
export interface VerifiedPost {
  readonly channelId: string;
  readonly key: PostKey;
  readonly caller: Caller;
  /** Canonical JSON. */
  readonly text: string;
  /** Digest of the text. */
  readonly digest: string;
  /** When it is accepted, and until when it is stored; Unix seconds. */
  readonly now: number;
  readonly keepUntil: number;
  /** `limits.channelStoredBytes`: a channel with as many gets no post. */
  readonly mostBytes: number;
}
