/** An open group: its timeline, and whether and why nothing can be written. */
import type { Group } from '@posthouse/client';
import { computed, signal } from '@preact/signals';
import { Action } from '../parts/controls.tsx';
import { show } from '../router.ts';
import type { Line, MakeSource } from '../state/conversation-source.ts';
import type { Host } from '../state/host.ts';
import { lineOf } from './entry-lines.ts';
import { HandBack, hasLostChanges } from './hand-back.tsx';
import { memberName } from './names.ts';
import { text } from './text.ts';
import { writtenLines } from './written-lines.ts';

/** Why nothing can be written to a group; empty if it can. */
function barrierOf(group: Group | undefined): string {
  if (group === undefined) return text.notRead;
  const { membership, state, blocked } = group;
  if (membership === 'applied') return text.waitingForApproval;
  if (state?.status === 'closed') return text.closed;
  if (membership === 'ended') return text.notMember;
  if (blocked !== undefined) return hasLostChanges(group) ? text.wentBack : text.blocked;
  return membership === 'member' ? '' : text.notRead;
}

export const groupSource: MakeSource = (app, id) => {
  const { groups } = app.account;
  const group = signal<Group | undefined>(undefined);
  // An account that was removed gets no notification: the host is asked when the group is opened.
  groups.sync(id).catch(() => undefined);
  return {
    canReply: true,
    barrier: computed(() => barrierOf(group.value)),
    Status: () => <Status app={app} group={group.value} />,
    async read(limit) {
      const [newest, written, read, named] = await Promise.all([
        groups.listEntries(id, { newestFirst: true, limit: limit + 1 }),
        groups.listWritten(id),
        groups.get(id),
        groups.listMembers(id),
      ]);
      group.value = read;
      const nameOf = (account: string) => memberName(app, named, account);
      const entries = newest.slice(0, limit).reverse();
      const timeline = entries.map((entry) => lineOf(entry, nameOf, app.blocked.value));
      const lines = [...timeline, ...writtenLines(written, timeline.at(-1))];
      const atOrder = new Map<number | undefined, Line>(lines.map((line) => [line.order, line]));
      const quoted = lines.map((line) => {
        const answered = line.replyTo && atOrder.get(line.replyTo.order);
        return answered?.body === undefined ? line : { ...line, quote: answered.body.text };
      });
      return { lines: quoted, hasOlder: newest.length > limit };
    },
    async post({ replyTo, ...draft }) {
      const order = replyTo?.order;
      await groups.post(id, { ...draft, ...(order !== undefined && { replyTo: order }) });
    },
    async cancel({ messageId }) {
      await groups.cancel({ groupId: id, messageId });
    },
  };
};

/** What is to be known before writing: no key, a host that went back, people who ask to join. */
function Status({ app, group }: { readonly app: Host; readonly group: Group | undefined }) {
  if (group?.membership !== 'member') return null;
  const { id, hasKey, state } = group;
  const decisions = app.rooms.value?.decisions.value.get(id) ?? 0;
  const isOpen = state?.status === 'active';
  return (
    <>
      {!hasKey && isOpen && (
        <p class="banner">
          {text.noKey} <Manage id={id} label={text.recover} />
        </p>
      )}
      {(app.rooms.value?.restored.value.has(id) || hasLostChanges(group)) && (
        <HandBack app={app} group={group} />
      )}
      {decisions > 0 && isOpen && (
        <p class="banner">
          <Manage id={id} label={text.decide(decisions)} />
        </p>
      )}
    </>
  );
}

function Manage({ id, label }: { readonly id: string; readonly label: string }) {
  return (
    <Action plain work={async () => show({ screen: 'group', id })}>
      {label}
    </Action>
  );
}
