/** Answers of a host that differ from those of a good one, as `LyingRelay` asks for them: see `hostile-host.ts`. */
import type { ErrorCode } from '@posthouse/protocol';

// biome-ignore lint/suspicious/noExplicitAny: a host may make anything of an answer.
export type Json = any;

/** What a client asked for. */
export interface Asked {
  readonly method: string;
  readonly params: Json;
}

/** An error as the chapters have it: its catalogue code, and what it carries. */
export interface Refusal {
  readonly code: ErrorCode;
  readonly message: string;
  readonly data?: Json;
}

/** How a host answers differently, whatever is asked: see `hostile-host.ts`. */
export interface HostileAnswers {
  /** Parameters the relay gets instead. */
  ask(asked: Asked): Json;
  /** An answer the relay is not asked for. */
  instead(asked: Asked): { readonly result: Json } | { readonly refusal: Refusal } | undefined;
  answer(asked: Asked, result: Json): Json;
  refusal(refusal: Refusal): Json;
  /** The messages that leave instead of one notification, and members of every envelope. */
  notify(message: Json): readonly Json[];
  envelope(message: Json): Json;
  text(text: string): string;
  contentType(): string;
  /** Milliseconds an answer is held back, while notifications pass it. */
  delay(): number;
  /** Whether a WebSocket ends instead of an answer. */
  ends(asked: Asked): boolean;
  /** The body of an answer for one who would take any coding of it. */
  coded(body: string): { readonly coding: string; readonly body: Buffer } | undefined;
}
