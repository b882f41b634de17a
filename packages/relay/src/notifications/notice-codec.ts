/** Encodes notices for the bus between processes: each message is a JSON array of notices. */
import {
  ChannelId,
  Counter,
  checkSchema,
  GroupId,
  ProtocolError,
  RelayId,
  Type,
  UnixSeconds,
} from '@posthouse/protocol';
import type { Notice } from '../dispatch/notice.ts';

const Name = Type.String({ minLength: 1 });
const Names = Type.Array(Name);

const schemas = {
  timeline: Type.Object({ account: Name, head: Counter, deviceIds: Names }),
  'device-state': Type.Object({ account: Name, revision: Counter, deviceIds: Names }),
  revoked: Type.Object({ account: Name, deviceIds: Names }),
  capped: Type.Object({ account: Name, deviceId: Name, expiresAt: UnixSeconds }),
  ended: Type.Object({ account: Name, sessionIds: Names }),
  'group-timeline': Type.Object({ group: GroupId, head: Counter, accessEnded: Counter }),
  'group-applications': Type.Object({ group: GroupId, accounts: Names }),
  'group-recoveries': Type.Object({ group: GroupId, accounts: Names }),
  'channel-timeline': Type.Object({ channel: ChannelId, head: Counter }),
  'relay-dropped': Type.Object({ relay: RelayId }),
  process: Type.Object({ process: Name, isLeaving: Type.Boolean() }),
  'storage-lost': Type.Object({}),
  'storage-reached': Type.Object({}),
  gap: Type.Object({ aggregates: Type.Optional(Names) }),
} as const satisfies Record<Notice['kind'], unknown>;

/** A decoded message. */
export interface DecodedNotices {
  readonly notices: readonly Notice[];
  /** Number of invalid items: junk, or a kind that only a newer relay knows. */
  readonly invalid: number;
}

/** Decodes a message; never throws. */
export function decodeNotices(text: string): DecodedNotices {
  const items = parse(text);
  if (!Array.isArray(items)) return { notices: [], invalid: 1 };
  const notices = items.filter(isNotice);
  return { notices, invalid: items.length - notices.length };
}

function parse(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}

function isNotice(value: unknown): value is Notice {
  const kind = (value as { kind?: unknown } | null)?.kind;
  if (typeof kind !== 'string' || !Object.hasOwn(schemas, kind)) return false;
  try {
    checkSchema(schemas[kind as Notice['kind']], value);
    return true;
  } catch (error) {
    if (error instanceof ProtocolError) return false;
    throw error;
  }
}

/**
 * Encodes notices as messages, in order.
 * @param limit bytes of one message; a notice for many devices is split over several
 */
export function encodeNotices(notices: readonly Notice[], limit: number): Uint8Array[] {
  const messages: Uint8Array[] = [];
  let parts: string[] = [];
  let bytes = 0;
  const close = () => {
    if (parts.length > 0) messages.push(Buffer.from(`[${parts.join(',')}]`));
    parts = [];
    bytes = 0;
  };
  for (const text of notices.flatMap((notice) => textsOf(notice, limit))) {
    const more = Buffer.byteLength(text) + 1;
    if (bytes + more + 1 > limit) close();
    parts.push(text);
    bytes += more;
  }
  close();
  return messages;
}

/** Returns one text, or several with a part of the recipients each if one would be too long. */
function textsOf(notice: Notice, limit: number): string[] {
  const text = JSON.stringify(notice);
  if (Buffer.byteLength(text) + 2 <= limit) return [text];
  const halves = halvesOf(notice);
  if (halves === undefined) throw new RangeError(`a notice takes more than ${limit} bytes`);
  return halves.flatMap((half) => textsOf(half, limit));
}

/** Splits a notice by its recipients; `undefined` if it has fewer than two. */
function halvesOf(notice: Notice): readonly Notice[] | undefined {
  if ('deviceIds' in notice && notice.deviceIds.length > 1) {
    return cut(notice.deviceIds).map((deviceIds) => ({ ...notice, deviceIds }));
  }
  if (notice.kind === 'gap' && notice.aggregates !== undefined && notice.aggregates.length > 1) {
    return cut(notice.aggregates).map((aggregates) => ({ ...notice, aggregates }));
  }
  if ('sessionIds' in notice && notice.sessionIds.length > 1) {
    return cut(notice.sessionIds).map((sessionIds) => ({ ...notice, sessionIds }));
  }
  if ('accounts' in notice && notice.accounts.length > 1) {
    return cut(notice.accounts).map((accounts) => ({ ...notice, accounts }));
  }
  return undefined;
}

function cut<T>(items: readonly T[]): readonly (readonly T[])[] {
  const middle = Math.ceil(items.length / 2);
  return [items.slice(0, middle), items.slice(middle)];
}
