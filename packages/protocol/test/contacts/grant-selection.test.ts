import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import {
  addGrantSignature,
  type ContactGrant,
  cleanGrant,
  selectGrant,
  signGrant,
  validGrantDevices,
} from '../../src/index.ts';
import { canonicalJson, canonicalWith } from '../../src/json/index.ts';
import {
  alice,
  bob,
  bobOld,
  bobPhone,
  bobState,
  bobTwin,
  carol,
  network,
  now,
  otherNetwork,
  stateOf,
  type TestDevice,
  tampered,
} from './accounts.ts';

const scope = { grantor: bob.account, grantee: alice.account };
const devices = { state: bobState, now };
const grantOf = (device: TestDevice, facts: { expires_at?: number; x?: number } = {}) =>
  signGrant(network, device, { grantee: alice.account, ...facts });
const withSignatures = (grant: ContactGrant, ...by: TestDevice[]) =>
  by.reduce((signed, device) => addGrantSignature(network, signed, device), grant);
const select = (saved: ContactGrant | undefined, candidate: unknown, options = {}) =>
  selectGrant(network, { scope, saved, candidate, ...devices, ...options });

describe('03 §16.4: selection', () => {
  const finite = grantOf(bob, { expires_at: now + 100 });

  test('nothing saved: a verified candidate is saved', () => {
    expect(select(undefined, finite)).toEqual({ outcome: 'save', grant: finite });
  });

  test('a longer period replaces, body and signatures whole, entries that fail included', () => {
    const longer = grantOf(bobPhone, { expires_at: now + 101, x: 1 });
    const { signatures } = longer;
    const candidate = {
      ...longer,
      signatures: {
        ...signatures,
        [carol.deviceId]: tampered(signatures[bobPhone.deviceId] as string),
      },
    };
    expect(select(finite, candidate)).toEqual({ outcome: 'replace', grant: candidate });
  });

  test('an equal or shorter period with another body is dropped', () => {
    const equal = grantOf(bobPhone, { expires_at: now + 100, x: 1 });
    const shorter = grantOf(bobPhone, { expires_at: now + 99 });
    expect(select(finite, equal)).toEqual({ outcome: 'keep', grant: finite });
    expect(select(finite, shorter)).toEqual({ outcome: 'keep', grant: finite });
  });

  test('no end ranks above every end, and two without end are equal', () => {
    const open = grantOf(bob);
    const furthest = grantOf(bob, { expires_at: Number.MAX_SAFE_INTEGER });
    expect(select(furthest, open).outcome).toBe('replace');
    expect(select(open, furthest).outcome).toBe('keep');
    expect(select(open, grantOf(bob, { x: 1 })).outcome).toBe('keep');
  });

  test('an expired saved grant is renewed; an expired candidate is invalid', () => {
    const expired = grantOf(bob, { expires_at: now });
    expect(select(expired, finite)).toEqual({ outcome: 'replace', grant: finite });
    expect(select(finite, expired)).toEqual({ outcome: 'invalid', grant: finite });
    expect(select(undefined, expired)).toEqual({ outcome: 'invalid', grant: undefined });
  });

  test('scope comes before signatures', () => {
    const reversed = signGrant(network, alice, { grantee: bob.account });
    const other = signGrant(network, bob, { grantee: carol.account });
    for (const candidate of [reversed, other, { ...other, signatures: {} }]) {
      expect(select(finite, candidate)).toEqual({ outcome: 'out_of_scope', grant: finite });
    }
    const { context } = otherNetwork;
    expect(select(finite, finite, { context }).outcome).toBe('out_of_scope');
  });

  test('what is no grant at all is invalid', () => {
    for (const candidate of [null, 'grant', [], {}, { ...finite, grantor: 1 }]) {
      expect(select(finite, candidate)).toEqual({ outcome: 'invalid', grant: finite });
    }
  });

  test('claiming a longer period does not help an invalid grant', () => {
    const claimed = { ...finite, expires_at: now + 1_000 };
    expect(select(finite, claimed)).toEqual({ outcome: 'invalid', grant: finite });
  });

  test('a saved grant of another scope is the caller’s fault', () => {
    const other = signGrant(network, bob, { grantee: carol.account });
    expect(() => select(other, finite)).toThrow(TypeError);
  });
});

describe('03 §16.4: merging', () => {
  const body = { expires_at: now + 100 };
  const byBob = grantOf(bob, body);
  const byPhone = grantOf(bobPhone, body);

  test('the union of valid signatures', () => {
    const merged = withSignatures(byBob, bobPhone);
    const result = select(byBob, byPhone);
    expect(result.outcome).toBe('merge');
    expect(canonicalJson(result.grant as ContactGrant)).toBe(canonicalJson(merged));
  });

  test('the outcome is merge also when nothing changes', () => {
    expect(select(byBob, byBob)).toEqual({ outcome: 'merge', grant: byBob });
  });

  test('invalid never overwrites valid; a valid one replaces an invalid one', () => {
    const forged = { ...byBob.signatures, [bobPhone.deviceId]: byBob.signatures[bob.deviceId] };
    const half = { ...byBob, signatures: forged } as ContactGrant;
    expect(select(withSignatures(byBob, bobPhone), half).grant).toEqual(
      withSignatures(byBob, bobPhone),
    );
    expect(select(half, byPhone).grant).toEqual(withSignatures(byBob, bobPhone));
  });

  test('a merge drops the saved signature of a device that is no longer valid', () => {
    const old = grantOf(bobOld, body);
    expect(select(old, byBob)).toEqual({ outcome: 'merge', grant: byBob });
  });

  test('the outer object a candidate came in is not touched', () => {
    const received = { grant: structuredClone(byPhone) };
    select(byBob, received.grant);
    expect(received.grant).toEqual(byPhone);
  });
});

describe('03 §16.4: clean-up', () => {
  test('signatures of devices that are not valid go, others stay as they are', () => {
    const grant = withSignatures(grantOf(bob), bobOld, bobPhone);
    const cleaned = cleanGrant(network, grant, devices);
    expect(cleaned).toEqual(withSignatures(grantOf(bob), bobPhone));
  });

  test('nothing to remove: the very same grant', () => {
    const grant = withSignatures(grantOf(bob), bobPhone);
    expect(cleanGrant(network, grant, devices)).toBe(grant);
  });

  test('a valid signature must remain', async () => {
    const old = grantOf(bobOld);
    expect(cleanGrant(network, old, devices)).toBe(old);
    const state = await stateOf(0x02, []);
    expect(cleanGrant(network, old, { state, now })).toBe(old);
  });
});

/** Grants over few bodies, signed by any of Bob's devices, some entries forged. */
const signers = [bob, bobPhone, bobTwin, bobOld];
const grants = fc
  .record({
    body: fc.constantFrom({}, { x: 1 }, { expires_at: now + 100 }, { expires_at: now + 100, x: 1 }),
    by: fc.subarray(signers, { minLength: 1 }),
    forged: fc.subarray(signers),
  })
  .map(({ body, by, forged }) => {
    const grant = withSignatures(grantOf(by[0] as TestDevice, body), ...by.slice(1));
    const signatures = { ...grant.signatures };
    for (const device of forged) signatures[device.deviceId] = 'A'.repeat(86);
    return { ...grant, signatures };
  });
const validOf = (grant: ContactGrant) => validGrantDevices(network, grant, devices);
const bodyOf = (grant: ContactGrant) => canonicalWith(grant, { omit: ['signatures'] });
const runAll = (candidates: readonly ContactGrant[]) =>
  candidates.reduce<ContactGrant | undefined>(
    (saved, candidate) => select(saved, candidate).grant,
    undefined,
  );

describe('03 §16.4: any sequence of grants', () => {
  test('never loses a valid signature of the body it keeps, never shortens', () => {
    fc.assert(
      fc.property(grants, grants, (saved, candidate) => {
        fc.pre(validOf(saved).length > 0);
        const { outcome, grant } = select(saved, candidate);
        if (grant === undefined) throw new Error('a saved grant never vanishes');
        const kept = validOf(grant);
        if (bodyOf(grant) === bodyOf(saved)) {
          expect(kept).toEqual(expect.arrayContaining(validOf(saved)));
        }
        if (outcome === 'merge') {
          const union = new Set([...validOf(saved), ...validOf(candidate)]);
          expect(kept).toEqual([...union].sort());
          expect(Object.keys(grant.signatures).sort()).toEqual(kept);
        }
        const end = (item: ContactGrant) => item.expires_at ?? Number.POSITIVE_INFINITY;
        expect(end(grant)).toBeGreaterThanOrEqual(end(saved));
        expect(kept.length).toBeGreaterThan(0);
      }),
    );
  });

  test('taking the same grant again changes nothing', () => {
    fc.assert(
      fc.property(grants, grants, (saved, candidate) => {
        fc.pre(validOf(saved).length > 0);
        const once = select(saved, candidate).grant;
        const twice = select(once, candidate).grant;
        // Merging the very grant just put in place still drops entries that do not verify.
        expect(validOf(twice as ContactGrant)).toEqual(validOf(once as ContactGrant));
        expect(bodyOf(twice as ContactGrant)).toBe(bodyOf(once as ContactGrant));
      }),
    );
  });

  test('of one body, the valid signatures at the end do not depend on the order', () => {
    fc.assert(
      fc.property(fc.array(grants, { minLength: 1, maxLength: 5 }), fc.nat(), (all, seed) => {
        const first = all[0] as ContactGrant;
        const same = all.filter((grant) => bodyOf(grant) === bodyOf(first));
        const shift = seed % same.length;
        const turned = [...same.slice(shift), ...same.slice(0, shift)].reverse();
        const [one, other] = [runAll(same), runAll(turned)];
        expect(other === undefined ? [] : validOf(other)).toEqual(
          one === undefined ? [] : validOf(one),
        );
      }),
    );
  });
});
