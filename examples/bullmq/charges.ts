// What the workers and their starter share.

export const QUEUE = 'remora-example-charges';

/** A job: something that a customer has to pay. */
export interface Charge {
  readonly customer: string;
  readonly amount: number;
}

/** Where the balance of a customer is. */
export function accountOf(customer: string): string {
  return `remora-example/accounts/${customer}`;
}
