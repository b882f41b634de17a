/** `posthouse account`: which accounts the operator lets in. */
import { terminalColumns, terminalJson } from '@posthouse/protocol/terminal';
import type { Command } from 'commander';
import { wasEverHere } from '../accounts/index.ts';
import { systemClock } from '../clock.ts';
import {
  allowAccount,
  deleteRequest,
  disallowAccount,
  isWaiting,
  listAllowed,
  listRequests,
  registrations,
} from '../registration/index.ts';
import type { Storage } from '../storage/types.ts';
import { accountOf } from './reports-arguments.ts';
import { asksStorage, configAndFlags, subcommand, withStorage } from './storage-command.ts';
import { instant, note, print } from './terminal-output.ts';

const help = `
An account that is let in may come to be at home at this relay once, with any client, whatever the
setting registration is, except "closed". With "approval", accounts that tried are listed by
\`account waiting\`, for limits.registrationRequestPeriod; the person sets the account up again after the
approval. Accounts that are here already need no right. An account that was rejected may ask again.

The command works whether the relay runs or not; a running relay knows the change at once.

The address of a request is that of the client: an IPv6 address stands for its /64.

Exit status: 0 done, 1 failed or no such account, 2 wrong arguments or configuration.

Examples:
  posthouse account waiting --config relay.json
  posthouse account approve neo:860833102:NX8GreRFGFK5wpGMWetpX93HmtrezGogzk --config relay.json
  posthouse account allow neo:860833102:NX8GreRFGFK5wpGMWetpX93HmtrezGogzk --config relay.json`;

interface OwnFlags {
  readonly json?: boolean;
}

/** Completes `posthouse account`. */
export function configure(command: Command): void {
  asksStorage(command)
    // Flags after a verb belong to it.
    .enablePositionalOptions()
    .addHelpText('after', help)
    .action((_, of: Command) => of.help({ error: true }))
    .addCommand(aboutOne('allow', 'let an account in').action((id, _, of) => allow(id, of)))
    .addCommand(
      aboutOne('disallow', 'let an account in no longer, if it is not here yet').action(
        (id, _, of) => disallow(id, of),
      ),
    )
    .addCommand(
      lists('allowed', 'list the accounts that are let in and are not here yet').action((_, of) =>
        allowed(of),
      ),
    )
    .addCommand(
      aboutOne('approve', 'let an account in that waits for it').action((id, _, of) =>
        approve(id, of),
      ),
    )
    .addCommand(
      aboutOne('reject', 'remove an account from those that wait').action((id, _, of) =>
        reject(id, of),
      ),
    )
    .addCommand(
      lists('waiting', 'list the accounts that wait for approval').action((_, of) => waiting(of)),
    );
}

function aboutOne(name: string, description: string): Command {
  return subcommand(name, description).argument('<account>', 'ID of the account', accountOf);
}

function lists(name: string, description: string): Command {
  return subcommand(name, description).option('--json', 'print one JSON object per line');
}

async function allow(account: string, of: Command): Promise<void> {
  const { config } = configAndFlags(of);
  const { allowedAccounts } = config.limits;
  await withStorage(config, async (storage) => {
    if (await storage.read((tx) => wasEverHere(tx, account))) {
      print([`${account} is here already: it needs no right`]);
      return;
    }
    await letIn(storage, account, allowedAccounts);
    print([`${account} is let in`]);
  });
}

async function approve(account: string, of: Command): Promise<void> {
  const { config } = configAndFlags(of);
  const { allowedAccounts } = config.limits;
  await withStorage(config, async (storage) => {
    if (!(await storage.read((tx) => isWaiting(tx, account)))) {
      throw new Error(
        `${account} is not waiting: see posthouse account waiting, or use posthouse account allow`,
      );
    }
    await letIn(storage, account, allowedAccounts);
  });
  print([`${account} is let in`]);
}

async function reject(account: string, of: Command): Promise<void> {
  const { config } = configAndFlags(of);
  const wasWaiting = await withStorage(config, (storage) =>
    storage.write(registrations, (tx) => deleteRequest(tx, account)),
  );
  if (!wasWaiting) throw new Error(`${account} is not waiting: see posthouse account waiting`);
  print([`${account} is rejected`]);
}

async function letIn(storage: Storage, account: string, limit: number): Promise<void> {
  const allowedAt = systemClock.now();
  const hasRoom = await storage.write(registrations, (tx) =>
    allowAccount(tx, { account, allowedAt }, limit),
  );
  if (!hasRoom) {
    throw new Error(
      `${limit} accounts are let in and not here yet: disallow some, or raise limits.allowedAccounts`,
    );
  }
}

async function disallow(account: string, of: Command): Promise<void> {
  const { config } = configAndFlags(of);
  const wasAllowed = await withStorage(config, (storage) =>
    storage.write(registrations, (tx) => disallowAccount(tx, account)),
  );
  if (!wasAllowed) throw new Error(`${account} is not let in: see posthouse account allowed`);
  print([`${account} is no longer let in`]);
}

async function allowed(of: Command): Promise<void> {
  const { config, own } = configAndFlags<OwnFlags>(of);
  const found = await withStorage(config, (storage) =>
    storage.read((tx) => listAllowed(tx, config.limits.allowedAccounts)),
  );
  if (own.json) {
    print(found.map(({ account, allowedAt }) => terminalJson({ account, allowed_at: allowedAt })));
  } else if (found.length === 0) note('no account is let in');
  else {
    const rows = found.map(({ account, allowedAt }) => [instant(allowedAt), account]);
    print(terminalColumns([['since', 'account'], ...rows]));
  }
}

async function waiting(of: Command): Promise<void> {
  const { config, own } = configAndFlags<OwnFlags>(of);
  const found = await withStorage(config, (storage) =>
    storage.read((tx) => listRequests(tx, config.limits.registrationRequests)),
  );
  if (own.json) {
    print(
      found.map(({ account, address, askedAt }) =>
        terminalJson({ account, address, asked_at: askedAt }),
      ),
    );
  } else if (found.length === 0) note('no account is waiting');
  else {
    const rows = found.map(({ account, address, askedAt }) => [
      ...[instant(askedAt), address, account],
    ]);
    print(terminalColumns([['asked', 'address', 'account'], ...rows]));
  }
}
