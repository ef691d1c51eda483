// What the checks share: steps with a deadline, and notifications that can be waited for.
const DEADLINE = 100_000; // milliseconds, for all of it

let step = 'start';
setTimeout(() => {
  console.error(`not done after ${DEADLINE} ms; last step: ${step}`);
  process.exit(1);
}, DEADLINE).unref();

export function begin(name) {
  step = name;
  console.log(name);
}

// Notifications, as they come and to be waited for.
export class Heard {
  all = [];
  #waiting = [];

  add(method, params) {
    this.all.push({ method, params });
    this.#waiting = this.#waiting.filter((one) => !one());
  }
  of(method) {
    return this.all.filter((one) => one.method === method).map((one) => one.params);
  }
  // Resolves when `count` of them are there.
  until(method, count) {
    return new Promise((resolve) => {
      const look = () => this.of(method).length >= count && (resolve(this.of(method)), true);
      if (!look()) this.#waiting.push(look);
    });
  }
}
