/** Local contact names on the command line, and the account IDs that they stand for. */
import { AccountId, checkSchema } from '@posthouse/protocol';
import type { Account } from '../account.ts';
import { UsageError } from './exit.ts';
import { printable } from './output.ts';

/** Resolves a contact's local name, `me` or an account ID to an account ID. @throws UsageError */
export async function accountOf(account: Account, name: string): Promise<string> {
  if (name === 'me' || name === account.id) return account.id;
  if (name.startsWith('neo:')) {
    checkAccount(name);
    return name;
  }
  const found = (await account.contacts.list()).filter(({ alias }) => alias === name);
  const [first, second] = found;
  if (first === undefined) {
    throw new UsageError(`no contact is called ${name}: courier contacts lists them`);
  }
  if (second !== undefined) {
    throw new UsageError(`several contacts are called ${name}: use the account ID`);
  }
  return first.account;
}

/** @throws UsageError */
function checkAccount(id: string): void {
  try {
    checkSchema(AccountId, id);
  } catch {
    throw new UsageError(`${id} is not an account ID: courier contacts lists them`);
  }
}

/** Returns a function from account ID to what is printed: `me`, the local name, or the ID. */
export async function namesOf(account: Account): Promise<(id: string) => string> {
  const aliases = new Map(
    (await account.contacts.list()).map(({ account: id, alias }) => [id, alias]),
  );
  return (id) => (id === account.id ? 'me' : printable(aliases.get(id) ?? id));
}

/** Returns the local name of an account whose ID is printed as well; empty if it has none. */
export function aliasIn(name: (id: string) => string, account: string): string {
  const alias = name(account);
  return alias === account ? '' : alias;
}
