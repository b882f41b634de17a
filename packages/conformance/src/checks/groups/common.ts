import { type GroupMethodName, limits, methods } from '@posthouse/protocol';
import { canonicalJson, isJsonObject, type JsonObject } from '@posthouse/protocol/json';
import { type Check, checksOf } from '../../check.ts';
import { malformed, malformedQueries } from '../../fixtures/malformed.ts';
import { assertAllRefused } from '../../fixtures/refusals.ts';
import { tampered } from '../../fixtures/tampered.ts';
import { withDevice } from '../../fixtures/test-accounts.ts';
import type { TestAccount } from '../../fixtures/test-context.ts';
import { callTemplates, changeAndSign, prepareCall } from '../../groups/group-calls.ts';
import type { GroupFixture } from '../../groups/group-fixture.ts';
import { readHead } from '../../groups/group-reader.ts';

/** Rules of all group methods: session, form, unknown members, signature and size. */
// biome-ignore lint/complexity/noExcessiveLinesPerFunction: a list of independent checks
function commonChecks(method: GroupMethodName): readonly Check[] {
  const { check, list } = checksOf(method);
  const { signed, writes, chained } = callTemplates[method];
  const inQuery = (methods[method].http as readonly string[]).includes('GET');

  check(
    'session',
    {
      source: '05 §12.1, §12.4',
      title: 'needs a device session: unauthorized without, forbidden in an account session',
    },
    async (context) => {
      const { by, params } = await prepareCall(context, method);
      await context.expectError(await context.anonymous(), { method, params }, 'unauthorized');
      const accountSession = await context.accountSession(by.account);
      await context.expectError(accountSession, { method, params }, 'forbidden');
      await context.expectOk(by.caller, method, params);
    },
  );

  check(
    'form',
    {
      source: '05 §4, §12.4',
      title: 'refuses every malformed member with bad_request and stores nothing',
    },
    async (context) => {
      const { fixture, by, params } = await prepareCall(context, method);
      if (inQuery && context.transport === 'https') {
        await assertAllRefused({ by, method, codes: ['bad_request'] }, malformedQueries(params));
      } else {
        const calls = malformedCalls({ fixture, by, params }, method);
        await assertAllRefused({ by, method, codes: ['bad_request'] }, calls);
      }
      await context.expectOk(by.caller, method, params);
    },
  );

  check(
    'extension',
    {
      source: '05 §3.1, 02 §2.5',
      title: 'accepts unknown members',
      ...(inQuery && { transports: ['wss'] }),
    },
    async (context) => {
      const { fixture, by, params } = await prepareCall(context, method);
      const future = { some: ['thing', { of: 1 }], $type: 'unknown' };
      const extended = changeAndSign({ fixture, by }, { params, signed }, (part) => ({
        ...part,
        future,
      }));
      await context.expectOk(by.caller, method, extended);
    },
  );

  if (signed !== 'none') {
    check(
      'signature',
      {
        source: '05 §3.1, §12.4',
        title: 'answers invalid_signature to an altered signature or one of another device',
      },
      async (context) => {
        const { fixture, by, params, again } = await prepareCall(context, method, { devices: 2 });
        const part = (signed === 'all' ? params : params[signed]) as JsonObject;
        const put = (value: JsonObject) =>
          signed === 'all' ? value : { ...params, [signed]: value };
        const other = await fixture.context.account().device();
        const wrong = {
          'bit flipped': put({
            ...part,
            device_signature: tampered(String(part.device_signature)),
          }),
          'member added': put({ ...part, added: 1 }),
          "the account's other device": put(fixture.group.sign(part, withDevice(by, 1))),
          'another account': put(fixture.group.sign(part, { device: other })),
        };
        const refused = { by, method, codes: ['invalid_signature'] } as const;
        await assertAllRefused(refused, Object.entries(wrong));
        await context.expectOk(by.caller, method, again());
      },
    );
  }

  if (writes) {
    check(
      'size',
      {
        source: '05 §12.2',
        title: 'accepts parameters of 1 MiB of Canonical JSON and refuses more',
        transports: ['https'],
      },
      async (context) => {
        const { fixture, by, params } = await prepareCall(context, method);
        const filled = (bytes: number) =>
          changeAndSign({ fixture, by }, { params, signed }, (part) => ({
            ...part,
            filling: 'x'.repeat(bytes),
          }));
        const large = limits.groupWriteBytes + 1 - canonicalJson(filled(0)).length;
        const call = { method, params: filled(large) };
        await context.expectError(by.caller, call, 'request_too_large');
        if (method === 'group.message.send') return;
        await context.expectOk(by.caller, method, filled(large - 1));
        // Reading a closed group is not guaranteed.
        if (chained && method !== 'group.close') await readHead(fixture.group, fixture.owner);
      },
    );
  }

  return list;
}

/** Malformed copies that cannot be signed: Canonical JSON has no fractions. */
const unsigned = /signature|context|fraction/;

/** Yields the malformed copies of a call; the signed part is signed if it can be. */
function* malformedCalls(
  {
    fixture,
    by,
    params,
  }: { readonly fixture: GroupFixture; readonly by: TestAccount; readonly params: JsonObject },
  method: GroupMethodName,
): Generator<readonly [string, JsonObject]> {
  const { signed } = callTemplates[method];
  for (const [what, broken] of malformed(params)) {
    const part = signed === 'all' ? broken : broken[signed];
    const sign = isJsonObject(part) && !unsigned.test(what);
    if (signed === 'none' || !sign) yield [what, broken];
    else yield [what, changeAndSign({ fixture, by }, { params: broken, signed }, (same) => same)];
  }
}

export const groupCommonChecks = (Object.keys(callTemplates) as GroupMethodName[]).flatMap(
  commonChecks,
);
