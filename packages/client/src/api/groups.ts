// biome-ignore-all lint/style/noExcessiveLinesPerFile: one public class; half of it is examples
import type {
  ContentReference,
  GroupMember,
  GroupProjection,
  GroupState,
} from '@posthouse/protocol';
import type { JsonObject } from '@posthouse/protocol/json';
import { buildConversations } from '../conversations/build-conversations.ts';
import type { ListOptions } from '../conversations/list-options.ts';
import type { AccountCore } from '../core.ts';
import { ClientError } from '../errors.ts';
import type { GroupAccountEvent, MessageStatusEvent } from '../events.ts';
import { catchUpGroup } from '../groups/catch-up-groups.ts';
import {
  type GroupBlock,
  type GroupMembership,
  groupRows,
  loadGroup,
  nicknames,
  type StoredGroup,
} from '../groups/group-rows.ts';
import type { NewGroup } from '../groups/membership/create-group.ts';
import {
  addGroup,
  applyToGroup,
  decodeInviteAddress,
  forgetGroup,
  previewGroup,
} from '../groups/membership/join-group.ts';
import { firstIdOf } from '../groups/outbox.ts';
import {
  groupEntry,
  listGroupEntries,
  listGroupMessages,
} from '../groups/timeline/group-entries.ts';
import {
  type GroupEntry,
  type GroupMessage,
  isGroupMessage,
  toGroupEntry,
} from '../groups/timeline/group-entry.ts';
import {
  cancelInGroup,
  type GroupMessageStatus,
  listWrittenToGroup,
  postToGroup,
  type SentToGroup,
  sendToGroup,
  settledInGroup,
  type WrittenGroupMessage,
} from '../groups/timeline/post-group-message.ts';
import { groupLane, sendWaitingToGroup } from '../groups/timeline/send-group-message.ts';
import { keyOf } from '../store/row-keys.ts';
import { type TimeLimit, withTimeLimit } from '../sync/budget.ts';
import { checkDraftId, type NamedDraft } from '../sync/draft-outcomes.ts';
import { runToEnd } from '../sync/run-to-end.ts';
import { GroupAdministration } from './group-administration.ts';
import { type Abortable, signalOf } from './options.ts';

/** A group as this device knows it. */
export interface Group {
  readonly id: string;
  /** Relay ID of the host. */
  readonly relayId: string;
  readonly membership: GroupMembership;
  /** Sequence up to which it is read; -1 before the first read. */
  readonly position: number;
  /** Verified state; absent before the first read. */
  readonly state?: GroupProjection;
  /** The event that does not verify, with the reason; no later event is used (05 §5.5). */
  readonly blocked?: GroupBlock;
  /** Whether this device has the key that opens the group's current messages. */
  readonly hasKey: boolean;
}

/** A member with its nickname in this group. */
export interface NamedMember extends GroupMember {
  readonly nickname?: string;
}

/** A message to a group: text, attachments, or both. */
export interface GroupDraft {
  readonly text?: string;
  /** Media type of the text; plain text by default. */
  readonly contentType?: string;
  readonly attachments?: readonly ContentReference[];
  /** Sequence of the message that it answers. */
  readonly replyTo?: number;
}

/**
 * Groups. Their state is rebuilt from the signed history, which is verified from its beginning;
 * other claims of the host are not trusted (05 §1.2).
 *
 * @example
 * const group = await account.groups.create({ name: 'Chess club' });
 * const { text } = await account.groups.invite(group.id);
 * await other.groups.join(text);
 * await account.groups.approve(group.id, [other.id]);
 * await other.sync();
 * await other.groups.send(group.id, { text: 'Hello' });
 */
export class Groups extends GroupAdministration {
  readonly #core: AccountCore;

  constructor(core: AccountCore) {
    super(core);
    this.#core = core;
  }

  /**
   * Lists the stored groups without forgotten ones.
   *
   * @example
   * const names = (await account.groups.list()).map(({ state }) => state?.name);
   */
  async list(): Promise<Group[]> {
    return await this.#core.store.read(async (tx) => {
      const found: Group[] = [];
      for (const { group_id, isForgotten } of await groupRows(tx)) {
        if (isForgotten) continue;
        found.push(toGroup(await loadGroup(tx, group_id), this.#core.account));
      }
      return found;
    });
  }

  /**
   * Reads one stored group.
   *
   * @throws ClientError `not_a_member` for a group this device does not know
   * @example
   * const { membership, hasKey } = await account.groups.get(groupId);
   */
  async get(groupId: string): Promise<Group> {
    const stored = await this.#core.store.read((tx) => loadGroup(tx, groupId));
    return toGroup(stored, this.#core.account);
  }

  /**
   * Creates a group. Its host never changes.
   *
   * @throws ClientError `invalid_input`; `no_relay` if the relay does not host groups
   * @example
   * const { id } = await account.groups.create({ name: 'Chess club', capacity: 20 });
   */
  async create(facts: NewGroup, options: Abortable = {}): Promise<Group> {
    const { createGroup } = await this.#core.later();
    return await this.get(await createGroup(this.#core, facts, signalOf(options)));
  }

  /**
   * Reads the host's description of an invitation's group, for display only: nothing is verified.
   *
   * @throws ClientError `verification_failed`
   * @example
   * const { name } = await account.groups.preview(invitation);
   */
  async preview(invitation: string, options: Abortable = {}): Promise<GroupState> {
    const address = decodeInviteAddress(this.#core, invitation);
    return await previewGroup(this.#core, address, signalOf(options));
  }

  /**
   * Applies for membership. An applicant gets no notification of the decision: `sync` tries to read
   * the group, and emits `group-joined` when that succeeds.
   *
   * @throws ClientError `verification_failed`, `invalid_input`
   * @example
   * const { id } = await account.groups.join(invitation);
   */
  async join(invitation: string, options: Abortable = {}): Promise<Group> {
    const address = decodeInviteAddress(this.#core, invitation);
    await applyToGroup(this.#core, address, signalOf(options));
    return await this.get(address.group_id);
  }

  /**
   * Adds a group that the account is a member of, if no other device can share it. The group is
   * read; its messages can be opened after `requestRecovery`.
   *
   * @throws ClientError `invalid_input`, `not_a_member`, `no_relay`
   * @example
   * await account.groups.add({ groupId, relayId });
   */
  async add(
    address: { readonly groupId: string; readonly relayId: string },
    options: Abortable = {},
  ): Promise<Group> {
    await addGroup(this.#core, address, signalOf(options));
    return await this.get(address.groupId);
  }

  /**
   * Forgets a group that was left or closed or does not verify, or an undecided application. What
   * was read stays in the store, and is used again if the account joins again.
   *
   * @param options.evenAsMember also forgets a group that cannot be left because its host is gone
   * @throws ClientError `invalid_input` for a member: leave first
   * @example
   * await account.groups.leave(groupId);
   * await account.groups.forget(groupId);
   */
  async forget(groupId: string, options: { readonly evenAsMember?: boolean } = {}): Promise<void> {
    await forgetGroup(this.#core, groupId, options);
  }

  /**
   * Catches one group up.
   *
   * @returns its events since the last call of this or of {@link Account.sync}
   * @example
   * for (const event of await account.groups.sync(groupId)) console.log(event.kind);
   */
  async sync(
    groupId: string,
    options: Abortable = {},
  ): Promise<(GroupAccountEvent | MessageStatusEvent)[]> {
    const core = this.#core;
    const read = (limit: TimeLimit) => catchUpGroup(core, groupId, limit);
    await core.events.drain();
    await runToEnd(core, withTimeLimit(core, signalOf(options), read));
    return await core.events.takeIf((event): event is GroupAccountEvent | MessageStatusEvent =>
      event.kind === 'message-status'
        ? event.conversation.id === groupId
        : 'groupId' in event && event.groupId === groupId,
    );
  }

  /**
   * Stores a message; it is sent in the background, and by `sync` and `follow`, in the order of
   * these calls. It waits also while its epoch's key is missing. A draft with a `draftId` is posted once
   * at most: see `conversations.withdrawDraft`.
   *
   * @throws ClientError `not_a_member`, `not_permitted`, `group_blocked`, `invalid_input`; never for
   *   being offline
   * @example
   * const posted = await account.groups.post(groupId, { text: 'Tuesday?' });
   * console.log(posted.status); // waiting
   */
  async post(groupId: string, draft: GroupDraft & NamedDraft): Promise<GroupMessageStatus> {
    checkDraftId(draft);
    const core = this.#core;
    const { value } = await postToGroup(core, groupId, groupMessageContent(core, draft), draft);
    core.sender.start(groupLane(groupId), sendWaitingToGroup(core, groupId));
    return { groupId, messageId: firstIdOf(value), status: 'waiting' };
  }

  /**
   * Waits until a message of this device has the host's answer.
   *
   * @returns its status, with the `sequence` if it was accepted, or an `error`
   * @throws ClientError `invalid_input` for an unknown message, also one before the last 10,000 that
   *   ended in groups and channels; what leaves it without an answer, as
   *   `send`; RelayUnreachable with `kept`
   * @example
   * const posted = await account.groups.post(groupId, { text: 'Tuesday?' });
   * const { status, sequence } = await account.groups.settled(posted);
   */
  async settled(
    key: { readonly groupId: string; readonly messageId: string },
    options: Abortable = {},
  ): Promise<GroupMessageStatus> {
    return await settledInGroup(this.#core, key, signalOf(options));
  }

  /**
   * Cancels a message that is not sealed yet; one that was rejected or failed is not listed any more.
   *
   * @throws ClientError `already_sent`; `invalid_input` for an unknown message
   * @example
   * const posted = await account.groups.post(groupId, { text: 'Tuesday?' });
   * await account.groups.cancel(posted).catch(() => console.log('too late'));
   */
  async cancel(key: {
    readonly groupId: string;
    readonly messageId: string;
  }): Promise<GroupMessageStatus> {
    return await cancelInGroup(this.#core, key);
  }

  /**
   * Stores a message as `post` does, and waits for the host's answer. If there is none, it stays
   * stored, and `sync` sends it in its place; if it cannot be sealed now, it is given up.
   *
   * @throws ClientError `not_a_member`, `not_permitted`, `group_blocked`, `group_behind`,
   *   `group_key_missing`, `invalid_input`
   * @throws RelayRefused; RelayUnreachable with `kept`
   * @example
   * const { sequence } = await account.groups.send(groupId, { text: 'Tuesday?' });
   * await account.groups.send(groupId, { text: 'At eight.', replyTo: sequence });
   */
  async send(groupId: string, draft: GroupDraft, options: Abortable = {}): Promise<SentToGroup> {
    const content = groupMessageContent(this.#core, draft);
    return await sendToGroup(this.#core, { groupId, content }, signalOf(options));
  }

  /**
   * Sets the own nickname in one group; `null` removes it.
   *
   * @throws the same as `send`
   * @example
   * await account.groups.setNickname(groupId, 'The Rook');
   */
  async setNickname(
    groupId: string,
    nickname: string | null,
    options: Abortable = {},
  ): Promise<SentToGroup> {
    const content = { $type: this.#core.network.type('group.member.nickname.update'), nickname };
    return await sendToGroup(this.#core, { groupId, content }, signalOf(options));
  }

  /**
   * Lists the stored timeline: messages, changes and rejected events, oldest first unless
   * `newestFirst`. Positions are sequences.
   *
   * @throws ClientError `invalid_input`
   * @example
   * const latest = await account.groups.listEntries(groupId, { limit: 50, newestFirst: true });
   */
  async listEntries(groupId: string, options: ListOptions = {}): Promise<GroupEntry[]> {
    const rows = await this.#core.store.read((tx) => listGroupEntries(tx, groupId, options));
    return rows.map((row) => toGroupEntry(row));
  }

  /**
   * Lists the members' messages, decrypted, oldest first unless `newestFirst`. Positions are
   * sequences.
   *
   * @throws ClientError `invalid_input`
   * @example
   * const [last] = await account.groups.listMessages(groupId, { limit: 1, newestFirst: true });
   */
  async listMessages(groupId: string, options: ListOptions = {}): Promise<GroupMessage[]> {
    await buildConversations(this.#core);
    const rows = await this.#core.store.read((tx) => listGroupMessages(tx, groupId, options));
    return rows.map((row) => toGroupEntry(row));
  }

  /**
   * Lists the messages that this device wrote and that are not in the timeline, in the order of
   * writing: `waiting`, `sending`, `target_accepted` and not read yet, `rejected` or `failed`. They
   * come after those of `listMessages`. `settled` sends one that waits; one that failed is listed
   * until `cancel`, and its content can be posted again.
   *
   * @example
   * for (const { status, body } of await account.groups.listWritten(groupId)) {
   *   console.log(status, body?.text);
   * }
   */
  async listWritten(groupId: string): Promise<WrittenGroupMessage[]> {
    return await this.#core.store.read((tx) => listWrittenToGroup(this.#core, tx, groupId));
  }

  /**
   * Returns the message that another one answers; `undefined` if it answers none, if that one is
   * not stored here, or if the sequence is not a member's message (05 §14.3).
   *
   * @example
   * for (const message of await account.groups.listMessages(groupId)) {
   *   const answered = await account.groups.getReplyTarget(message);
   *   console.log(answered?.body?.text, message.body?.text);
   * }
   */
  async getReplyTarget(message: GroupMessage): Promise<GroupMessage | undefined> {
    const { replyTo: sequence } = message;
    if (sequence === undefined) return undefined;
    const { store } = this.#core;
    const entry = await store.read((tx) => groupEntry(tx, message.groupId, sequence));
    return entry !== undefined && isGroupMessage(entry) ? toGroupEntry(entry) : undefined;
  }

  /**
   * Lists the members of the verified state, with their nicknames.
   *
   * @example
   * for (const { account: id, role, nickname } of await account.groups.listMembers(groupId)) {
   *   console.log(id, role, nickname);
   * }
   */
  async listMembers(groupId: string): Promise<NamedMember[]> {
    return await this.#core.store.read(async (tx) => {
      const { group } = await loadGroup(tx, groupId);
      const found: NamedMember[] = [];
      for (const member of group?.members.values() ?? []) {
        const nickname = (await nicknames.get(tx, keyOf(groupId, member.account)))?.nickname;
        found.push({ ...member, ...(typeof nickname === 'string' && { nickname }) });
      }
      return found;
    });
  }
}

function toGroup({ row, group }: StoredGroup, self: string): Group {
  const { group_id: id, relay_id: relayId, standing, position, blocked, activeKey } = row;
  const key = group?.members.get(self)?.member_encryption_public_key;
  return {
    id,
    relayId,
    membership: standing,
    position,
    ...(group !== undefined && { state: group }),
    ...(blocked !== undefined && { blocked }),
    // A recovery may have given the account a key that this device does not have.
    hasKey: activeKey !== undefined && activeKey === key,
  };
}

function groupMessageContent({ network }: AccountCore, draft: GroupDraft): JsonObject {
  const { text, contentType = 'text/plain', attachments = [], replyTo } = draft;
  if (text === undefined && attachments.length === 0) {
    throw new ClientError('invalid_input', 'group message: give text or attachments');
  }
  return {
    $type: network.type('group.message.content'),
    ...(text !== undefined && { body: { content_type: contentType, text } }),
    ...(attachments.length > 0 && { attachments: [...attachments] }),
    ...(replyTo !== undefined && { reply_to_seq: replyTo }),
  };
}
