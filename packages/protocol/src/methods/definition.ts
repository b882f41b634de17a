import type { TSchema } from '../schema.ts';

/** Verbs of the HTTP form (chapter 02, section 2.2). */
export type HttpVerb = 'GET' | 'POST' | 'PUT' | 'PATCH' | 'DELETE';

/**
 * Which session a method asks for (chapter 02, sections 9.5 and 14):
 * `any` takes a device or an account session.
 */
export type SessionRule = 'none' | 'device' | 'account' | 'any';

/** Optional modules a relay declares in its descriptor (chapter 01, section 13.1). */
export type Capability = 'channel.host.v1' | 'group.host.v1';

/** One method of the client API: the only place with its name, verbs, session and shapes. */
export interface MethodDefinition<
  P extends TSchema = TSchema,
  R extends TSchema | null = TSchema | null,
> {
  /** Dotted, case-sensitive name. */
  readonly name: string;
  /** Verbs of the HTTP form; empty for a method that exists over WebSocket only. */
  readonly http: readonly HttpVerb[];
  readonly session: SessionRule;
  /** Shape of the parameter object. Unknown members are tolerated (chapter 02, section 2.5). */
  readonly params: P;
  /** Shape of the response object, or `null` if the method defines none (204, `result: null`). */
  readonly result: R;
  /** The module the method belongs to; absent for the base module. */
  readonly capability?: Capability;
  /** How the method pages: after a sequence, with an opaque cursor, or not at all. */
  readonly page?: 'sequence' | 'cursor';
  /** Root members of the parameters in which `null` is allowed (01 J9, 2.7). */
  readonly nullable?: readonly string[];
  /** Names that are refused in the GET form instead of being ignored (02 §2.4). */
  readonly queryRefuses?: readonly string[];
  /**
   * The handler checks the parameters against `params` itself, because something happens before:
   * a malformed attempt to authenticate uses up its nonce (02 §9.2, §18).
   */
  readonly handlerChecksParams?: true;
  /** Whether `null` is allowed in unknown root members of the parameters too (06 §6.2). */
  readonly nullableUnknown?: boolean;
  /**
   * Depth up to which the parameters may be nested, below 01 J5: stored parts come back deeper
   * inside an answer, which J5 limits too. Absent if nothing comes back.
   */
  readonly depth?: number;
  /** The same for root members of the parameters, each with its value at depth 0. */
  readonly memberDepth?: Readonly<Record<string, number>>;
  /** Chapter and section that define the method. */
  readonly source: string;
}

/** One WebSocket notification (chapter 02, section 12.2). */
export interface NotificationDefinition<P extends TSchema = TSchema> {
  readonly name: string;
  readonly params: P;
  readonly capability?: Capability;
  readonly source: string;
}

/** Declares a method; keeps the literal types. */
export function defineMethod<
  const P extends TSchema,
  const R extends TSchema | null,
  const D extends MethodDefinition<P, R>,
>(definition: D & MethodDefinition<P, R>): D {
  return definition;
}
