/** The subject of a sequence of steps: people, their group, and the reference model. */
import { encodeBase64url, type GroupInvite, type GroupMessageEnvelope } from '@posthouse/protocol';
import type { JsonObject } from '@posthouse/protocol/json';
import { TestGroup } from '../../fixtures/group.ts';
import { type MemberKey, privateKeyOf } from '../../fixtures/member-key.ts';
import { Person } from '../../fixtures/person.ts';
import type { InProcessRelay } from '../../support/in-process-relay.ts';
import type { Step, Who } from './commands.ts';
import type { Caller, Hints } from './ground.ts';
import { Reference } from './reference.ts';

const names = ['ann', 'ben', 'cem', 'dora', 'emil'] as const;
const withLaptop: readonly string[] = ['ann', 'ben', 'cem'];

/** Seconds a laptop's certificate is good for. */
const laptopLife = 3_000;

export const limits = {
  groupMembers: 6,
  groupBans: 2,
  groupInviteTtl: 5_000,
  groupRecoveryWait: 900,
  groupStagingPeriod: 900,
  groupMessageRetention: 1_000,
  groupKeyPage: 3,
};

/** A digest of nothing that exists. */
export const otherDigest = `sha256:${encodeBase64url(new Uint8Array(32).fill(0x42))}`;

export type StepOf<K extends Step['kind']> = Extract<Step, { kind: K }>;

/** A calling device, and whose it is. */
export interface Speaker extends Caller {
  readonly person: Person;
  readonly name: string;
}

/** What the reference says of a call that it accepts. */
interface Said {
  readonly hints?: Hints;
  /** Checks the relay's answer. */
  readonly check?: (answer: JsonObject) => void | Promise<void>;
}

/** A call, for the relay and for the reference. */
export interface Act {
  readonly by: Speaker;
  readonly method: string;
  readonly params: object;
  readonly model: () => Said;
}

export class Stage {
  readonly relay: InProcessRelay;
  readonly people: readonly Person[];
  readonly group: TestGroup;
  readonly model: Reference;
  /** Every head there was. */
  readonly heads: string[];
  /** Client secrets by commitment. */
  readonly secrets = new Map<string, Uint8Array>();
  readonly invites: GroupInvite[] = [];
  /** The devices that signed them. */
  readonly inviteSigners = new Map<GroupInvite, string>();
  readonly messages: { readonly by: Speaker; readonly message: GroupMessageEnvelope }[] = [];
  /** The rotation begun last. */
  rotation: { readonly commitment: string; readonly ownerKey: MemberKey | undefined } | undefined;

  private constructor(relay: InProcessRelay, people: readonly Person[], group: TestGroup) {
    this.relay = relay;
    this.people = people;
    this.group = group;
    const [ann] = people as [Person];
    this.secrets.set(group.commitment, group.secret);
    this.heads = [group.head];
    const settings = {
      now: () => relay.clock.now(),
      capacityCap: limits.groupMembers,
      banCap: limits.groupBans,
      inviteTtl: limits.groupInviteTtl,
      tolerance: relay.context.limits.authClockTolerance,
      recoveryWait: limits.groupRecoveryWait,
      stagingPeriod: limits.groupStagingPeriod,
      retention: limits.groupMessageRetention,
    };
    this.model = new Reference(settings, {
      by: { account: ann.account, device: ann.device().deviceId },
      key: group.keyOf(ann).publicKey,
      commitment: group.commitment,
      head: group.head,
      capacity: group.create.member_capacity,
    });
    for (const person of people) this.#learnDevices(person, [...person.devices.keys()]);
  }

  /** Ann has created the group and is its only member. */
  static async open(relay: InProcessRelay): Promise<Stage> {
    const people: Person[] = [];
    for (const name of names) {
      const person = new Person(relay, name);
      await person.addDevice('phone');
      const expiresAt = relay.clock.now() + laptopLife;
      if (withLaptop.includes(name)) await person.addDevice('laptop', { expiresAt });
      await person.moveIn();
      people.push(person);
    }
    const group = await TestGroup.create(relay, people[0] as Person, { member_capacity: 5 });
    relay.takeNotices();
    return new Stage(relay, people, group);
  }

  get groupId(): string {
    return this.group.groupId;
  }

  /** Publishes a state with a laptop whose certificate is new, or without one. */
  async changeDevices({ whose, laptop }: StepOf<'devices'>): Promise<void> {
    const person = this.person(whose);
    if (person.devices.size === 1) return;
    const expiresAt = this.relay.clock.now() + laptopLife;
    if (laptop) await person.addDevice('laptop', { expiresAt });
    const devices = laptop ? ['phone', 'laptop'] : ['phone'];
    await person.publishState(await person.state({ devices }));
    this.#learnDevices(person, devices);
  }

  #learnDevices(person: Person, devices: readonly string[]): void {
    const { account } = person;
    const all = [...person.devices.values()].map(({ deviceId }) => deviceId);
    this.model.accountDevices.set(account, all);
    const known = devices.map((name) => {
      const { deviceId, certificate } = person.device(name);
      return [deviceId, certificate.expires_at] as const;
    });
    this.model.setDevices(account, new Map(known));
  }

  /** Moves time to where something ends, or a second before it. */
  waitForEnd({ which, isEarly }: StepOf<'end'>): void {
    const { clock } = this.relay;
    const { events, invites, recoveries, staging } = this.model;
    const ends = [
      ...[...invites.values(), ...recoveries.values()].map(({ expiresAt }) => expiresAt),
      ...events.map(({ message }) => message?.keepUntil ?? 0),
      staging?.expiresAt ?? 0,
    ];
    const ahead = ends.filter((end) => end > clock.now()).sort((a, b) => a - b);
    const end = pick(ahead, which);
    if (end !== undefined) clock.advance(end - clock.now() - (isEarly ? 1 : 0));
  }

  person(index: number): Person {
    return this.people[index % this.people.length] as Person;
  }

  /** A member, but for the highest numbers. */
  memberOrAny(index: number): Person {
    const members = this.people.filter(({ account }) => this.model.members.has(account));
    return index < 8 ? (pick(members, index) as Person) : this.person(index);
  }

  accountsOf(targets: readonly number[]): string[] {
    return targets.map((target) => this.person(target).account);
  }

  /** All there are, if the step asks for all. */
  chosen(
    step: { readonly all: boolean; readonly targets: readonly number[] },
    there: ReadonlyMap<string, unknown>,
  ): string[] {
    return step.all ? [...there.keys()] : this.accountsOf(step.targets);
  }

  speaker({ by, device }: { readonly by: Who; readonly device: number }): Speaker {
    const person = this.#cast(by);
    const all = [...person.devices.keys()];
    const valid = all.filter((each) => this.model.isValid(person.device(each).deviceId));
    const name = pick(device < 8 && valid.length > 0 ? valid : all, device) as string;
    return { person, name, account: person.account, device: person.device(name).deviceId };
  }

  /** An account with a role now; the owner if no account has it. */
  #cast(by: Who): Person {
    if (typeof by === 'number') return this.person(by);
    const { applications, members, owner } = this.model;
    // An account without an application comes first: a second one would only replace the first.
    const people = [...this.people].sort(
      (a, b) => Number(applications.has(a.account)) - Number(applications.has(b.account)),
    );
    const found = people.find(({ account }) => {
      const role = members.get(account)?.role;
      if (by === 'outsider') return role === undefined;
      return role === (by === 'manager' ? 'administrator' : by);
    });
    return found ?? (this.people.find(({ account }) => account === owner) as Person);
  }

  /** A box of the secret with a commitment for a member key. */
  box(account: string, publicKey: string, commitment: string) {
    const person = this.people.find((each) => each.account === account) as Person;
    const privateKey = privateKeyOf(publicKey) as Uint8Array;
    const secret = this.secrets.get(commitment) as Uint8Array;
    return this.group.box(person, { key: { publicKey, privateKey }, secret });
  }
}

export function pick<T>(all: readonly T[], which: number): T | undefined {
  return all[which % all.length];
}
