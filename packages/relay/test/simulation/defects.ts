/** Relays that are broken on purpose: each must be found. */
import { messages } from '../../src/messages/index.ts';
import { WalFlush } from '../../src/storage/sqlite/wal-flush.ts';
import type { Storage, Writer } from '../../src/storage/types.ts';
import { BoundSession } from '../../src/transport/bound-session.ts';
import type { RelayDefect } from './relay/relay-defect.ts';

export interface Defect extends RelayDefect {
  readonly name: string;
  /** What is wrong. */
  readonly what: string;
  /** How many relays it takes. */
  readonly relays: number;
  /** Breaks what is not passed as a parameter, until disposed of. */
  install?(): Disposable;
}

export const defects: readonly Defect[] = [
  {
    name: 'early-answer',
    what: 'a write is answered before its commit',
    relays: 1,
    storage: answerEarly,
  },
  {
    name: 'no-flush',
    what: 'commits are not flushed',
    relays: 1,
    skipsFlushes: true,
  },
  {
    name: 'early-flush',
    what: 'a write is answered after its commit, before its flush',
    relays: 1,
    install: answerUnflushed,
  },
  {
    name: 'lost-frames',
    what: 'what a failed flush has lost of the log is not written again at the next start',
    relays: 1,
    ignoresRewrites: true,
  },
  {
    name: 'hidden-fault',
    what: 'a failed commit is taken for a successful one',
    relays: 1,
    hidesFaults: true,
  },
  {
    name: 'no-undo',
    what: 'a refused write is not undone',
    relays: 1,
    rewrite: (sql) => (sql === 'ROLLBACK' ? 'COMMIT' : sql),
  },
  {
    name: 'lost-hint',
    what: 'one of 20 notices is lost',
    relays: 1,
    dropsNotices: 0.05,
  },
  {
    name: 'dead-timer',
    what: 'one of three long timers does not fire',
    relays: 1,
    dropsTimers: { share: 1 / 3, longerThan: 10_000 },
  },
  {
    name: 'unwoken-delivery',
    what: 'a queued message does not wake its job',
    relays: 2,
    sleeps: 'messages.delivery',
  },
  {
    name: 'removed-device',
    what: 'removed devices stay valid',
    relays: 1,
    rewrite: (sql) =>
      sql.startsWith('DELETE FROM devices')
        ? without(sql)
        : sql.replace('INSERT INTO devices', 'INSERT OR REPLACE INTO devices'),
  },
  {
    name: 'former-member',
    what: 'those who leave a group stay members',
    relays: 1,
    rewrite: forgets('DELETE FROM group_members'),
  },
  {
    name: 'former-moderator',
    what: 'the moderators of a channel are not updated',
    relays: 1,
    rewrite: (sql) =>
      sql.replace('SET moderators = ?,', 'SET moderators = moderators || substr(?, 1, 0),'),
  },
  {
    name: 'sent-twice',
    what: 'a repeated message.send is a new message',
    relays: 1,
    rewrite: forgets('INSERT INTO sent_results'),
  },
  {
    name: 'group-sent-twice',
    what: 'a repeated group.message.send is a new message',
    relays: 1,
    rewrite: forgets('INSERT INTO group_sent'),
  },
  {
    name: 'received-twice',
    what: 'a repeated message.deliver is a new message',
    relays: 2,
    rewrite: forgets('INSERT INTO received_results'),
  },
  {
    name: 'not-queued',
    what: 'a message for another relay is not queued',
    relays: 2,
    rewrite: forgets('INSERT INTO deliveries'),
  },
  {
    name: 'unbound-delivery',
    what: 'a lost answer of another relay counts as a request that was not sent',
    relays: 3,
    forgetsUnknown: true,
  },
  {
    name: 'short-page',
    what: 'a page that has more lacks its first message',
    relays: 1,
    install: shortenPages,
  },
  {
    name: 'dropped-subscription',
    what: 'a member who is removed and admitted again is not told of changes',
    relays: 1,
    install: dropSubscriptions,
  },
];

/** A statement with the same parameters that changes nothing. */
function without(sql: string): string {
  if (!sql.startsWith('INSERT')) return `${sql} AND 1 = 0`;
  return sql.replace(/VALUES \(([^)]*)\)/, 'SELECT $1 WHERE 1 = 0');
}

function forgets(start: string): (sql: string) => string {
  return (sql) => (sql.startsWith(start) ? without(sql) : sql);
}

function answerEarly(storage: Storage): Storage {
  const { append, write } = storage;
  storage.write = (aggregates, work, options) =>
    new Promise((resolve, reject) => {
      const early = async (tx: Writer) => {
        const value = await work(tx);
        resolve(value);
        return value;
      };
      write.call(storage, aggregates, early, options).catch(reject);
    });
  storage.append = (kind, input) =>
    new Promise((resolve, reject) => {
      const apply: typeof kind.apply = (tx, given) => {
        const output = kind.apply(tx, given);
        resolve(output);
        return output;
      };
      append.call(storage, { ...kind, apply } as never, input).catch(reject);
    });
  return storage;
}

function answerUnflushed(): Disposable {
  const { prototype } = WalFlush;
  const { reached } = prototype;
  prototype.reached = () => undefined;
  return {
    [Symbol.dispose]: () => {
      prototype.reached = reached;
    },
  };
}

function shortenPages(): Disposable {
  const name = 'message.timeline.sync';
  const handlers = messages.handlers as Record<string, unknown>;
  const handler = messages.handlers[name];
  if (handler === undefined) throw new Error('no handler to break');
  handlers[name] = async (...call: Parameters<typeof handler>) => {
    const answer = await handler(...call);
    const page = answer.result as { has_more: boolean; items: unknown[] };
    if (page.has_more && page.items.length > 1) page.items.shift();
    return answer;
  };
  return {
    [Symbol.dispose]: () => {
      handlers[name] = handler;
    },
  };
}

function dropSubscriptions(): Disposable {
  const { prototype } = BoundSession;
  const { drop } = prototype;
  prototype.drop = function leave(this: BoundSession, id: string) {
    this.leave('group', id);
  };
  return {
    [Symbol.dispose]: () => {
      prototype.drop = drop;
    },
  };
}
