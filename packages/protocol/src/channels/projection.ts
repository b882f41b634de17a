/**
 * The state that a channel's events lead to. One set of pure functions for both ends: the relay
 * applies `reducePost` to decide about an edit, the client applies `projectChannel` to events it
 * verified.
 */
import { ProtocolError } from '../errors.ts';
import { canonicalJson } from '../json/canonical.ts';
import type { JsonObject, JsonValue } from '../json/types.ts';
import { type ChannelPost, type ChannelPostEdit, checkPostContent, patchNames } from './content.ts';
import type { ChannelDescriptor } from './descriptor.ts';
import type { VerifiedChannelEvent } from './events.ts';

/**
 * The members of a post that an edit can change: `body`, `attachments` and the post's unknown root
 * members (06 §6.2).
 */
export type PostState = JsonObject & Pick<ChannelPost, 'body' | 'attachments'>;

/** Members of a post that are not part of its state. */
const postOnly = new Set(['$type', 'channel_id', 'message_id', 'device_signature']);

/**
 * Returns the state of a post without edits.
 *
 * @example
 * const { body, attachments } = postState(post);
 */
export function postState(post: ChannelPost): PostState {
  return Object.fromEntries(Object.entries(post).filter(([name]) => !postOnly.has(name)));
}

/**
 * Applies one edit: absent keeps, `null` removes, anything else replaces whole.
 *
 * @returns the new state, or the very same object when the edit has no effect, which then makes no
 *   event
 * @throws ProtocolError `bad_request` when neither a body nor an attachment is left
 * @example
 * const withoutBody = reducePost(postState(post), { ...edit, body: null });
 */
export function reducePost(state: PostState, edit: ChannelPostEdit): PostState {
  const patch = edit as JsonObject;
  // A set: both sides can have thousands of members, and the relay's loop waits for this. For the
  // same reason only what the edit names is compared: nothing else can differ.
  const names = new Set(patchNames(patch));
  if ([...names].every((name) => hasMember(state, name, patch[name]))) return state;
  const kept = Object.entries(state).filter(([name]) => !names.has(name));
  const set = [...names].map((name) => [name, patch[name]] as const).filter(([, v]) => v !== null);
  // `fromEntries` defines members, so that `__proto__` stays an ordinary name.
  const next: PostState = Object.fromEntries([...kept, ...set]);
  checkPostContent(next, 'the edited post');
  return next;
}

/**
 * Returns whether a member is as an edit wants it, byte by byte in Canonical JSON; `null`: not
 * there.
 */
function hasMember(state: PostState, name: string, wanted: JsonValue | undefined): boolean {
  const current = Object.hasOwn(state, name) ? (state[name] as JsonValue) : null;
  return canonicalJson(current) === canonicalJson(wanted as JsonValue);
}

/** A readable post as its edits left it. */
export interface ProjectedPost {
  readonly sequence: number;
  /** Host's Unix seconds: a claim, no proof (06 §1). */
  readonly acceptedAt: number;
  /** Account that published it, proved by signature. */
  readonly account: string;
  readonly post: ChannelPost;
  readonly state: PostState;
  /** The last edit that took effect, of whichever account. */
  readonly edited?: {
    readonly sequence: number;
    readonly acceptedAt: number;
    readonly account: string;
  };
}

/** The result of applying a range of a channel's events. */
export interface ChannelProjection {
  /** Highest sequence applied; -1 before the first. */
  readonly position: number;
  /** Descriptor of the highest revision among the events. */
  readonly descriptor: ChannelDescriptor | undefined;
  /** By sequence, ascending. */
  readonly posts: ReadonlyMap<number, ProjectedPost>;
}

/** The projection of no events. */
export const emptyProjection: ChannelProjection = {
  position: -1,
  descriptor: undefined,
  posts: new Map(),
};

/**
 * Applies verified events in strictly ascending sequence to a projection and returns the next
 * projection (06 §10.1, §10.2). An edit or deletion whose post is not loaded has no effect: a
 * client that loads older pages projects again from its first event. Events that a host should have
 * refused have no effect either: an edit that empties its post, any event after closure.
 *
 * @throws RangeError when the events do not ascend from the projection's position
 * @example
 * const { events } = verifyChannelPage(network, page, { channelId, relayId });
 * const { posts } = projectChannel(emptyProjection, events);
 * for (const { state } of posts.values()) console.log(state.body?.text);
 */
export function projectChannel(
  start: ChannelProjection,
  events: Iterable<VerifiedChannelEvent>,
): ChannelProjection {
  let { position, descriptor } = start;
  const posts = new Map(start.posts);
  for (const event of events) {
    if (event.sequence <= position) throw new RangeError('channel events do not ascend');
    position = event.sequence;
    if (descriptor?.status === 'closed') continue;
    if (event.kind === 'descriptor') {
      descriptor = newerDescriptor(descriptor, event.payload);
    } else {
      applyContent(posts, event);
    }
  }
  return { position, descriptor, posts };
}

/**
 * Chooses the descriptor to store: only a strictly higher revision replaces the saved one, and
 * nothing replaces the final one (06 §4, §7.4). Both must have been verified, for one channel.
 *
 * @example
 * const stored = newerDescriptor(channel, nextChannel);
 */
export function newerDescriptor(
  saved: ChannelDescriptor | undefined,
  candidate: ChannelDescriptor,
): ChannelDescriptor {
  if (saved === undefined) return candidate;
  return saved.status === 'active' && candidate.revision > saved.revision ? candidate : saved;
}

function applyContent(posts: Map<number, ProjectedPost>, event: VerifiedChannelEvent): void {
  const { sequence, acceptedAt, account } = event;
  if (event.kind === 'post') {
    const post = event.payload;
    posts.set(sequence, { sequence, acceptedAt, account, post, state: postState(post) });
  } else if (event.kind === 'delete') {
    posts.delete(event.payload.target_sequence);
  } else if (event.kind === 'edit') {
    const target = posts.get(event.payload.target_sequence);
    const state = target && reduceOrKeep(target.state, event.payload);
    if (target === undefined || state === undefined || state === target.state) return;
    const edited = { sequence, acceptedAt, account };
    posts.set(target.sequence, { ...target, state, edited });
  }
}

function reduceOrKeep(state: PostState, edit: ChannelPostEdit): PostState {
  try {
    return reducePost(state, edit);
  } catch (error) {
    if (error instanceof ProtocolError) return state;
    throw error;
  }
}
