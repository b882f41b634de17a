/** Groups that wait for something: invitations, own applications, requests to decide, restored hosts. */
import type { AccountEvent, Group } from '@posthouse/client';
import { visibleName } from '@posthouse/client/visible-text';
import { isGroupManager } from '@posthouse/protocol';
import { signal } from '@preact/signals';
import type { ComponentType } from 'preact';
import { refresher } from '../engine/refresh.ts';
import { Action } from '../parts/controls.tsx';
import { findShared } from '../parts/find-shared.ts';
import { nameOf } from '../parts/names.ts';
import { openShared, show } from '../router.ts';
import type { Host, RoomWatch } from '../state/host.ts';
import { isLocked } from '../state/stores.ts';
import { groupName } from './names.ts';
import { text } from './text.ts';

/** An invitation that a contact sent as a message. */
interface Invitation {
  readonly from: string;
  readonly address: string;
}

const invitationsKey = 'posthouse.rooms.invitations';
const namesKey = 'posthouse.rooms.applications';
const restoredKey = 'posthouse.rooms.restored';
/** Invitations that are kept; the oldest goes first. */
const maxInvitations = 20;
/** Of them of one contact, who could push out those of all others. */
const maxOfOne = 3;

/** Stores a list for the next start; a locked device keeps nothing that can be read. */
function store(key: string, value: readonly unknown[]): void {
  if (isLocked()) localStorage.removeItem(key);
  else localStorage.setItem(key, JSON.stringify(value));
}

/** Reads a list that this page stored; what another version stored counts for nothing. */
function stored<Of>(key: string): readonly Of[] {
  try {
    const value: unknown = JSON.parse(localStorage.getItem(key) ?? '[]');
    return Array.isArray(value) ? value : [];
  } catch {
    return [];
  }
}

export class Rooms implements RoomWatch {
  readonly invitations = signal<readonly Invitation[]>(stored(invitationsKey));
  readonly groups = signal<readonly Group[]>([]);
  /** Applications and requests for new keys, by group. */
  readonly decisions = signal<ReadonlyMap<string, number>>(new Map());
  /** Groups whose host was put back to an earlier state. */
  readonly restored = signal<ReadonlySet<string>>(new Set(stored<string>(restoredKey)));
  readonly Waiting: ComponentType = () => <Waiting rooms={this} app={this.#app} />;
  readonly #app: Host;
  readonly refresh: () => Promise<void>;
  readonly #countAll: () => Promise<void>;

  constructor(app: Host) {
    this.#app = app;
    // What another tab changed.
    addEventListener('storage', ({ key }) => {
      if (key === invitationsKey) this.invitations.value = stored(invitationsKey);
    });
    this.refresh = refresher(
      async () => {
        this.groups.value = await app.account.groups.list();
      },
      (error) => app.failed(error),
    );
    this.#countAll = refresher(
      async () => {
        await this.refresh();
        for (const group of this.groups.value) await this.count(group);
      },
      () => false,
    );
  }

  /** Takes an event of the account. */
  apply(event: AccountEvent): void {
    if (event.kind === 'connection') {
      // Lists may have changed while no notification could arrive.
      if (event.state === 'connected') void this.#countAll();
      return;
    }
    if (event.kind === 'message') this.#invited(event.message.from, event.message.body?.text);
    if (event.kind === 'group-rollback') {
      this.setRestored(new Set([...this.restored.value, event.groupId]));
    }
    if (event.kind === 'group-applications' || event.kind === 'group-recoveries') {
      void this.recount(event.groupId);
    } else if (event.kind.startsWith('group-')) void this.refresh();
  }

  /** Counts again what one group has to decide. */
  async recount(id: string): Promise<void> {
    await this.refresh();
    const group = this.groups.value.find((each) => each.id === id);
    if (group !== undefined) await this.count(group);
  }

  /** Asks the host how many requests wait; a host that does not answer changes nothing. */
  async count({ id, membership, state }: Group): Promise<void> {
    const { groups, id: self } = this.#app.account;
    const role = state?.members.get(self)?.role ?? 'member';
    const mayDecide = membership === 'member' && state?.status === 'active' && isGroupManager(role);
    let count = 0;
    if (mayDecide) {
      try {
        const [applications, recoveries] = await Promise.all([
          groups.listApplications(id),
          groups.listRecoveries(id),
        ]);
        const others = recoveries.filter(({ request }) => request.account !== self);
        count = applications.length + others.length;
      } catch {
        return;
      }
    }
    this.decisions.value = new Map(this.decisions.value).set(id, count);
  }

  /** Takes an invitation out of the list: used or declined. */
  forget(address: string): void {
    this.#keep(this.#kept().filter((each) => each.address !== address));
  }

  nameApplication(id: string, name: string): void {
    const others = this.#names().filter(([known]) => known !== id);
    const names = [[id, name], ...others].slice(0, maxInvitations);
    store(namesKey, names);
  }

  /** Names by group, as the hosts said them. */
  #names(): readonly (readonly [string, string])[] {
    return stored(namesKey);
  }

  nameOf(group: Group): string {
    const name = this.#names().find(([id]) => id === group.id)?.[1];
    return group.state === undefined && name !== undefined ? visibleName(name) : groupName(group);
  }

  setRestored(ids: ReadonlySet<string>): void {
    this.restored.value = ids;
    store(restoredKey, [...ids]);
  }

  #invited(from: string, body: string | undefined): void {
    const { address, kind } = findShared(body ?? '') ?? {};
    const isOwn = from === this.#app.account.id;
    if (address === undefined || kind !== 'group' || isOwn) return;
    const others = this.#kept().filter((each) => each.address !== address);
    const ofOthers = others.filter((each) => each.from !== from);
    const ofThis = others.filter((each) => each.from === from).slice(0, maxOfOne - 1);
    this.#keep([{ from, address }, ...ofThis, ...ofOthers].slice(0, maxInvitations));
  }

  /** What another tab may have changed just now; a locked device keeps it in this page alone. */
  #kept(): readonly Invitation[] {
    return isLocked() ? this.invitations.value : stored(invitationsKey);
  }

  #keep(invitations: readonly Invitation[]): void {
    this.invitations.value = invitations;
    store(invitationsKey, invitations);
  }
}

/** The part of the list that says what groups wait for. */
function Waiting({ app, rooms }: { readonly app: Host; readonly rooms: Rooms }) {
  const invitations = rooms.invitations.value;
  const deciding = rooms.groups.value.filter(({ id }) => rooms.decisions.value.get(id));
  const applied = rooms.groups.value.filter(({ membership }) => membership === 'applied');
  // Without the key of a group there is no conversation to list.
  const keyless = rooms.groups.value.filter(
    ({ membership, hasKey, state }) =>
      membership === 'member' && !hasKey && state?.status === 'active',
  );
  if (invitations.length + deciding.length + applied.length + keyless.length === 0) return null;
  return (
    <section aria-label={text.waiting}>
      <h2>{text.waiting}</h2>
      <ul>
        {invitations.map(({ from, address }) => (
          <li key={address} class="request">
            <p dir="auto">{text.invitationOf(nameOf(app, from))}</p>
            <div class="row">
              <Action work={async () => openShared({ kind: 'group', address })}>{text.open}</Action>
              <Action plain work={async () => rooms.forget(address)}>
                {text.decline}
              </Action>
            </div>
          </li>
        ))}
        {deciding.map((group) => (
          <li key={group.id} class="request">
            <p>
              <bdi>{groupName(group)}</bdi>: {text.decide(rooms.decisions.value.get(group.id) ?? 0)}
            </p>
            <Action work={async () => show({ screen: 'group', id: group.id })}>{text.open}</Action>
          </li>
        ))}
        {keyless.map((group) => (
          <li key={`key/${group.id}`} class="request">
            <p>
              <bdi>{groupName(group)}</bdi>: {text.noKey}
            </p>
            <Action work={async () => show({ screen: 'group', id: group.id })}>{text.open}</Action>
          </li>
        ))}
        {applied.map((group) => (
          <li key={group.id} class="request">
            <p>
              <bdi>{rooms.nameOf(group)}</bdi>: {text.applied}
            </p>
            <Action
              plain
              work={() =>
                app.try(async () => {
                  await app.account.groups.forget(group.id);
                  await rooms.refresh();
                })
              }
            >
              {text.forgetApplication}
            </Action>
          </li>
        ))}
      </ul>
    </section>
  );
}
