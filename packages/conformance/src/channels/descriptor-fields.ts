/** Valid and invalid members of a descriptor, for creations and updates alike (06 §4). */
import type { JsonValue } from '@posthouse/protocol/json';
import type { TestContext } from '../fixtures/test-context.ts';

type Fields = Readonly<Record<string, Readonly<Record<string, JsonValue>>>>;

/** Makes account IDs that need not exist. */
function accounts(context: TestContext, count: number): string[] {
  return Array.from({ length: count }, () => context.account().id);
}

/** Valid members of a descriptor, by what they test. */
export function validFields(context: TestContext): Fields {
  return {
    'a name of one character': { name: 'x' },
    'a name of 256 bytes': { name: 'é'.repeat(128) },
    'a name with white space around it': { name: ' \t x\u3000' },
    'an empty description': { description: '' },
    'a description of 4,096 bytes': { description: `${'é'.repeat(2_047)}xx` },
    'an empty list of moderators': { moderators: [] },
    'ten moderators': { moderators: accounts(context, 10) },
  };
}

/** Invalid members of a descriptor, by what is wrong. */
export function invalidFields(context: TestContext, owner: string): Fields {
  const [one, two] = accounts(context, 2) as [string, string];
  const { magic } = context.network;
  const elsewhere = one.replace(`:${magic}:`, `:${magic === '1' ? '2' : '1'}:`);
  return {
    'an empty name': { name: '' },
    'a name of white space': { name: ' \t\u0085\u2003\u3000' },
    'a name of 257 bytes': { name: `${'é'.repeat(128)}x` },
    'a description of white space': { description: ' \n\u2028' },
    'a description of 4,097 bytes': { description: `${'é'.repeat(2_048)}x` },
    'a description that is no text': { description: ['text'] },
    'eleven moderators': { moderators: accounts(context, 11) },
    'the owner as a moderator': { moderators: [one, owner] },
    'a moderator twice': { moderators: [one, two, one] },
    'a moderator of another network': { moderators: [elsewhere] },
    'a moderator that is not an account': { moderators: ['neo:1:unknown'] },
    'a moderator in other letters': { moderators: [one.replace('neo:', 'NEO:')] },
    'another status': { status: 'paused' },
    'a revision that is no integer': { revision: '1' },
    'a time that is no integer': { updated_at: 'now' },
    'a nonce that is not canonical': { nonce: 'AAAAAAAAAAAAAAAAAAAAAB' },
  };
}
